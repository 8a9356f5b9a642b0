"""ONNX files: what is in them, and whether two differ in their weights alone.

A file is a message of protobuf: fields, each a number, a kind and a value. What is read here is
the little that comparing takes; neither the package onnx nor protobuf is needed.

    Model(path)             nodes, leaves (the tensors that the file holds), inputs and outputs
    matched(old, new)       the leaf of `new` that stands in the place of each leaf of `old`

Two models match if they have the same nodes with the same attributes in the same order, between
the same values. Names are free. Leaves match by their place: exporters rename what they fold.
"""
import pathlib
import struct

import torch

# TensorProto.DataType: the element type in torch and the field of typed data.
TYPES = {
    1: ("float32", "f"),
    2: ("uint8", "B"),
    3: ("int8", "b"),
    6: ("int32", "i"),
    7: ("int64", "q"),
    9: ("bool", "B"),
    10: ("float16", "H"),
    11: ("float64", "d"),
    16: ("bfloat16", "H"),
    17: ("float8_e4m3fn", "B"),
    19: ("float8_e5m2", "B"),
}
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # kinds of fields


class OnnxError(ValueError):
    """The file cannot be read, or two files do not match."""


def varint(data, at):
    """A number of 7 bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def signed(value):
    """A varint as the int64 that it stands for."""
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    """(number, kind, value) of each field of a message."""
    at = 0
    try:
        while at < len(data):
            tag, at = varint(data, at)
            number, kind = tag >> 3, tag & 7
            if kind == VARINT:
                value, at = varint(data, at)
            elif kind == BYTES:
                size, at = varint(data, at)
                value, at = data[at : at + size], at + size
            elif kind in (FIXED32, FIXED64):
                size = 4 if kind == FIXED32 else 8
                value, at = data[at : at + size], at + size
            else:
                raise OnnxError(f"a field of unknown kind {kind}: no ONNX file")
            if at > len(data):
                raise OnnxError("the ONNX file breaks off")
            yield number, kind, value
    except IndexError:
        raise OnnxError("the ONNX file breaks off") from None


def text(value):
    """A field of text."""
    return bytes(value).decode("utf-8", "surrogateescape")


def numbers(kind, value, code):
    """The numbers of one occurrence of a repeated field, which may hold many packed."""
    if code in "fd":
        return [number for (number,) in struct.iter_unpack("<" + code, bytes(value))]
    if kind == VARINT:
        return [signed(value)]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(signed(number))
    return found


class Leaf:
    """A tensor that a file holds: element type, shape, bytes (None where they were taken out)."""

    def __init__(self, name, dtype, shape, data):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.data = data

    @classmethod
    def read(cls, message, folder, name=None):
        """A TensorProto."""
        leaf = cls(name or "", 0, [], None)
        typed, outside = [], {}
        for number, kind, value in fields(message):
            if number == 1:
                leaf.shape += numbers(kind, value, "q")
            elif number == 2:
                leaf.dtype = value
            elif number in (4, 5, 7, 10, 11):
                typed += numbers(kind, value, {4: "f", 10: "d"}.get(number, "q"))
            elif number == 8 and name is None:
                leaf.name = text(value)
            elif number == 9:
                leaf.data = value
            elif number == 13:
                pair = {key: text(part) for key, _, part in fields(value)}
                outside[pair.get(1)] = pair.get(2, "")
        if outside:
            leaf.data = beside(folder, outside, leaf.name)
        elif typed and leaf.dtype in TYPES:
            leaf.data = b"".join(struct.pack("<" + TYPES[leaf.dtype][1], x) for x in typed)
        return leaf

    def tensor(self):
        """The elements."""
        dtype = getattr(torch, TYPES.get(self.dtype, ("", ""))[0], None)
        if dtype is None or self.data is None:
            raise OnnxError(f"{self.name} has no elements that torch {torch.__version__} can hold")
        if not len(self.data):
            return torch.empty(self.shape, dtype=dtype)
        return torch.frombuffer(bytearray(self.data), dtype=dtype).reshape(self.shape)

    def is_like(self, other):
        """Whether `other` can stand in the place of this one."""
        same = self.dtype == other.dtype and self.shape == other.shape
        return same and (self.data is None or bytes(self.data) == bytes(other.data or b""))


def beside(folder, where, name):
    """The bytes of a tensor in a file beside the model."""
    if folder is None:
        raise OnnxError(f"the bytes of {name} lie in a file beside the model, which is not there")
    file = pathlib.Path(folder) / where.get("location", "")
    start = int(where.get("offset", 0))
    with open(file, "rb") as data:
        data.seek(start)
        return data.read(int(where["length"])) if "length" in where else data.read()


def attribute(message, folder):
    """The name of an AttributeProto, and its value in a form that compares."""
    name, found = "", []
    codes = {2: "f", 3: "q", 7: "f", 8: "q"}
    for number, kind, value in fields(message):
        if number == 1:
            name = text(value)
        elif number in codes:
            found += [(number, x) for x in numbers(kind, value, codes[number])]
        elif number == 5:
            leaf = Leaf.read(value, folder)
            found.append((number, leaf.dtype, tuple(leaf.shape), bytes(leaf.data or b"")))
        elif number != 13:  # a comment
            found.append((number, value if kind == VARINT else bytes(value)))
    return name, found


class Node:
    """An operator with the names of the values between which it stands."""

    def __init__(self, message, folder):
        self.name = self.op = self.domain = ""
        self.text = ""  # what the exporter says of it: where it stands in the module's source
        self.inputs, self.outputs, self.attributes = [], [], {}
        self.constant = None  # the leaf that a Constant makes
        for number, _, value in fields(message):
            if number == 1:
                self.inputs.append(text(value))
            elif number == 2:
                self.outputs.append(text(value))
            elif number == 3:
                self.name = text(value)
            elif number == 4:
                self.op = text(value)
            elif number == 5:
                key, found = attribute(value, folder)
                self.attributes[key] = found
                if key == "value":
                    tensors = [part for field, _, part in fields(value) if field == 5]
                    self.constant = Leaf.read(tensors[0], folder, "") if tensors else None
            elif number == 6:
                self.text += text(value)
            elif number == 7:
                self.domain = text(value)
            elif number == 9:
                self.text += "".join(text(part) for field, _, part in fields(value) if field == 2)

    def __str__(self):
        return f"{self.op} '{self.name}'" if self.name else self.op


def value_info(message):
    """The name of an input and its sizes, each a number, a name or None."""
    name, sizes = "", []
    for number, _, value in fields(message):
        if number == 1:
            name = text(value)
        elif number == 2:
            tensor = [part for field, _, part in fields(value) if field == 1]
            shapes = [part for field, _, part in fields(tensor[0]) if field == 2] if tensor else []
            for _, _, dim in fields(shapes[0]) if shapes else ():
                said = {field: part for field, _, part in fields(dim)}
                sizes.append(said[1] if 1 in said else text(said[2]) if 2 in said else None)
    return name, sizes


class Model:
    """What a file computes, and with which tensors."""

    def __init__(self, path):
        data = memoryview(pathlib.Path(path).read_bytes())
        self.folder = pathlib.Path(path).parent
        self.opset = 0
        self.nodes, self.inputs, self.outputs, self.functions = [], [], [], []
        self.leaves = {}
        for number, _, value in fields(data):
            if number == 7:
                self.read_graph(value)
            elif number == 8:
                said = {field: part for field, _, part in fields(value)}
                if text(said.get(1, b"")) in ("", "ai.onnx"):
                    self.opset = said.get(2, 0)
            elif number == 25:
                self.functions.append(bytes(value))
        self.inputs = [(name, sizes) for name, sizes in self.inputs if name not in self.leaves]
        self.settle()

    def read_graph(self, message):
        """A GraphProto."""
        for number, _, value in fields(message):
            if number == 1:
                self.nodes.append(Node(value, self.folder))
            elif number == 5:
                leaf = Leaf.read(value, self.folder)
                self.leaves[leaf.name] = leaf
            elif number == 11:
                self.inputs.append(value_info(value))
            elif number == 12:
                self.outputs.append(value_info(value)[0])

    def settle(self):
        """Constants and copies of leaves become leaves; exporters name merged tensors by copies."""
        nodes, self.nodes = self.nodes, []
        for node in nodes:
            output = node.outputs[0] if node.outputs else ""
            copies = node.op == "Identity" and output not in self.outputs
            if node.op == "Constant" and node.constant is not None:
                leaf = node.constant
                self.leaves[output] = Leaf(output, leaf.dtype, leaf.shape, leaf.data)
            elif copies and node.inputs[0] in self.leaves:
                leaf = self.leaves[node.inputs[0]]
                self.leaves[output] = Leaf(output, leaf.dtype, leaf.shape, leaf.data)
            else:
                self.nodes.append(node)


class Matching:
    """Walks two models side by side and notes which value of one stands for which of the other."""

    def __init__(self, old, new):
        self.old, self.new = old, new
        self.names = {}  # of the new model, by those of the old
        self.leaves = {}

    def value(self, old, new, place):
        """The values must stand for one another; a leaf does so the first time that it is met."""
        if old in self.old.leaves:
            self.leaf(old, new, place)
        elif self.names.get(old, "" if old == "" else None) != new:
            raise OnnxError(f"{place} reads another value")

    def leaf(self, old, new, place):
        """A tensor of one file for a tensor of the other."""
        before = self.old.leaves[old]
        after = self.new.leaves.get(new)
        if after is None:
            raise OnnxError(f"{place} reads the constant {old}, and in the module a computed value")
        if not before.is_like(after):
            what = "shape or type" if before.data is None else "value, which is compiled in"
            raise OnnxError(f"{old} ({new} of the module) has another {what}")
        known = self.leaves.setdefault(old, after)
        if known.name != new and bytes(known.data or b"") != bytes(after.data or b""):
            raise OnnxError(
                f"{known.name} and {new} were one constant, {old}, when the model was exported, "
                "and now differ"
            )

    def node(self, old, new):
        """The same operator, between values that stand for one another."""
        same = (old.op, old.domain) == (new.op, new.domain)
        if not same or old.attributes != new.attributes:
            raise OnnxError(f"where the bundle's model has {old}, the module's has {new}")
        counts = (len(old.inputs), len(old.outputs)) == (len(new.inputs), len(new.outputs))
        if not counts:
            raise OnnxError(f"{old} has other inputs or outputs in the module")
        for before, after in zip(old.inputs, new.inputs):
            self.value(before, after, str(old))
        self.names.update(zip(old.outputs, new.outputs))


def matched(old, new):
    """{name of a leaf of `old`: leaf of `new`}, or an OnnxError that says where they part."""
    if len(old.inputs) != len(new.inputs) or len(old.outputs) != len(new.outputs):
        raise OnnxError(
            f"the bundle's model has {len(old.inputs)} inputs and {len(old.outputs)} outputs, the "
            f"module's {len(new.inputs)} and {len(new.outputs)}"
        )
    if old.functions != new.functions:
        raise OnnxError("the models hold different functions")
    walk = Matching(old, new)
    walk.names.update(zip((name for name, _ in old.inputs), (name for name, _ in new.inputs)))
    for before, after in zip(old.nodes, new.nodes):
        walk.node(before, after)
    if len(old.nodes) != len(new.nodes):
        raise OnnxError(
            f"the bundle's model has {len(old.nodes)} nodes, the module's {len(new.nodes)}"
        )
    for before, after in zip(old.outputs, new.outputs):
        walk.value(before, after, "an output")
    return walk.leaves
