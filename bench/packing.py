"""Packed buffers: the bytes of a tensor in the order that a kernel wants its elements in.

`order` is `packed` of a launch list's argument (src/codegen/launch_list.h): of every dimension the
digits of a coordinate, lowest first, as pairs of extent and stride. A 4x4 tensor of bytes whose 2x2
tiles lie one behind another:

>>> packed(bytes(range(16)), [[[2, 1], [2, 8]], [[2, 2], [2, 4]]], 8).hex(" ")
'00 04 01 05 02 06 03 07 08 0c 09 0d 0a 0e 0b 0f'

Codes of four bits, the first in a byte's low bits: [[1, 2], [3, 4]] by columns.

>>> packed(bytes([0x21, 0x43]), [[[2, 1]], [[2, 2]]], 4).hex()
'3142'
"""


def places(order):
    """Where each element goes, row by row, in elements."""
    out = [0]
    for dim in order:
        along = [0]
        for extent, stride in dim:
            along = [digit * stride + at for digit in range(extent) for at in along]
        out = [before + at for before in out for at in along]
    return out


def packed(rows, order, bits):
    """`rows`: the tensor's bytes, its elements of `bits` bits row by row."""
    if bits >= 8:
        size, out = bits // 8, bytearray(len(rows))
        for i, place in enumerate(places(order)):
            out[place * size : (place + 1) * size] = rows[i * size : (i + 1) * size]
        return bytes(out)
    per, codes = 8 // bits, bytearray(len(rows) * (8 // bits))
    for i, place in enumerate(places(order)):
        codes[place] = rows[i // per] >> i % per * bits & (1 << bits) - 1
    return bytes(
        sum(codes[i + j] << j * bits for j in range(per)) for i in range(0, len(codes), per)
    )
