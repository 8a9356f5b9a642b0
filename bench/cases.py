"""The benchmark's cases: what bench/search.py searches and bench/measure.py measures.

A case is (row, text): the row names it, its group, types and track, and says for peers what it
computes ("problem"); the text is the ONNX model, or for problems of kind "torch" an expression that
`warploom new` reads."""

TYPES = {
    "bf16": 16,
    "fp16": 10,
    "fp32": 1,
    "e4m3": 17,
    "e5m2": 19,
    "int8": 3,
}  # TensorProto.DataType


def model(name, inputs, output, node, ours=False):
    tensor = lambda n, t, s: (
        f'{{ name: "{n}" type {{ tensor_type {{ elem_type: {TYPES[t]} shape {{ '
        + " ".join(f"dim {{ dim_value: {d} }}" for d in s)
        + " } } } }"
    )
    text = (
        f'ir_version: 8\nopset_import {{ domain: "" version: 17 }}\n'
        + 'opset_import { domain: "warploom" version: 1 }\n' * ours
    )
    text += f'graph {{\n  name: "{name}"\n  {node}\n'
    text += "".join(f"  input {tensor(*i)}\n" for i in inputs) + f"  output {tensor(*output)}\n}}\n"
    return text


def matmul(dtype, m, n, k, track=None, majors="nn"):
    """majors: n or t for each operand; t means that it is stored transposed, [k, m] and [n, k]."""
    track = track or dtype
    name = f"gemm_{track}_{m}x{n}x{k}" + ("" if majors == "nn" else f"_{majors}")
    nodes, operands = "", []
    for operand, major in zip("xw", majors):
        operands.append(operand + "t" if major == "t" else operand)
        if major == "t":
            nodes += (
                f'node {{ op_type: "Transpose" input: "{operand}" output: "{operand}t" '
                'attribute { name: "perm" ints: 1 ints: 0 type: INTS } }\n  '
            )
    nodes += (
        f'node {{ op_type: "MatMul" input: "{operands[0]}" input: "{operands[1]}" output: "y" }}'
    )
    stored = lambda shape, major: shape[::-1] if major == "t" else shape
    text = model(
        name,
        [("x", dtype, stored((m, k), majors[0])), ("w", dtype, stored((k, n), majors[1]))],
        ("y", dtype, (m, n)),
        nodes,
    )
    problem = {
        "kind": "matmul",
        "m": m,
        "n": n,
        "k": k,
        "transpose_a": majors[0] == "t",
        "transpose_b": majors[1] == "t",
    }
    return {
        "case": name,
        "group": "dense",
        "dtype": dtype,
        "track": track,
        "problem": problem,
    }, text


def scaled(dtype, m, n, k, majors="nn"):
    """8-bit operands, each with one scale: DequantizeLinear → MatMul, in bf16."""
    row, text = matmul(dtype, m, n, k, "fp8", majors)
    name = f"gemm_{dtype}_{m}x{n}x{k}" + ("" if majors == "nn" else f"_{majors}")
    text = text.replace(row["case"], name)
    for operand in "xw":
        text = text.replace(f'input: "{operand}" output', f'input: "{operand}f" output').replace(
            f'input: "{operand}" input', f'input: "{operand}f" input'
        )
        text = text.replace(f'input: "{operand}" }}', f'input: "{operand}f" }}').replace(
            f' input: "{operand}" output: "y"', f' input: "{operand}f" output: "y"'
        )
    scales = "".join(
        f'  initializer {{ name: "s{o}" data_type: 16 int32_data: {bits} }}\n'
        for o, bits in (("x", 0x3F00), ("w", 0x3E80))
    )
    nodes = "".join(
        f'  node {{ op_type: "DequantizeLinear" input: "{o}" input: "s{o}" output: "{o}f" }}\n'
        for o in "xw"
    )
    text = text.replace("  node {", nodes + "  node {", 1).replace(
        "  input {", scales + "  input {", 1
    )
    text = text.replace("version: 17", "version: 21").replace(
        'output { name: "y" type { tensor_type { elem_type: %d' % TYPES[dtype],
        'output { name: "y" type { tensor_type { elem_type: 16',
    )
    row |= {"case": name}
    row["problem"] |= {"kind": "scaled", "scales": [0.5, 0.25]}
    return row, text


def in_blocks(dtype, m, n, k):
    """8-bit operands, scales of 1x128 and 128x128 elements, the second operand and its scales
    stored transposed; in bf16."""
    turn = lambda i: (
        f'node {{ op_type: "Transpose" input: "{i}" output: "{i}t" '
        'attribute { name: "perm" ints: 1 ints: 0 type: INTS } }\n  '
    )
    node = (
        turn("w")
        + turn("sw")
        + 'node { op_type: "ScaledMatMul" domain: "warploom" input: "x" input: "wt" input: "sx" '
        'input: "swt" output: "y" }'
    )
    name = f"gemm_{dtype}_blocks_{m}x{n}x{k}_nt"
    inputs = [
        ("x", dtype, (m, k)),
        ("w", dtype, (n, k)),
        ("sx", "fp32", (m, k // 128)),
        ("sw", "fp32", (n // 128, k // 128)),
    ]
    problem = {
        "kind": "blocks",
        "m": m,
        "n": n,
        "k": k,
        "transpose_a": False,
        "transpose_b": True,
        "scales": [],
    }
    return (
        {"case": name, "group": "dense", "dtype": dtype, "track": "fp8", "problem": problem},
        model(name, inputs, ("y", "bf16", (m, n)), node, ours=True),
    )


def softmax(dtype, rows, columns):
    name = f"softmax_{dtype}_{rows}x{columns}"
    text = model(
        name,
        [("x", dtype, (rows, columns))],
        ("y", dtype, (rows, columns)),
        'node { op_type: "Softmax" input: "x" output: "y" attribute { name: "axis" i: -1 type: '
        'INT } }',
    )
    return {
        "case": name,
        "group": "rowwise",
        "dtype": dtype,
        "track": dtype,
        "problem": {"kind": "softmax", "rows": rows, "columns": columns},
    }, text


def spelled(name, group, expression, function, shapes, track, dtype="fp32", flops=0):
    """A problem that `warploom new` reads; `function` is the same in torch, of tensors a, b, c, …
    of these shapes."""
    names = ", ".join("abcdefgh"[: len(shapes)])
    problem = {
        "kind": "torch",
        "function": f"lambda {names}: {function}",
        "shapes": shapes,
        "flops": flops,
    }
    return {
        "case": f"{name}_{track}",
        "group": group,
        "dtype": dtype,
        "track": track,
        "problem": problem,
    }, expression


FIRST = "conv(a[100,3,224,224], b[96,3,11,11], c[96], strides=[4,4], pads=[2,2,2,2])"
FIRST_TORCH, FIRST_SHAPES = "F.conv2d(a, b, c, stride=4, padding=2)", [
    [100, 3, 224, 224],
    [96, 3, 11, 11],
    [96],
]
FIRST_FLOPS, SQUARE_FLOPS = 2.0 * 100 * 96 * 55 * 55 * 363, 2.0 * 128 * 64 * 56 * 56 * 576
SQUARE = (
    "conv(a[128,64,56,56], b[64,64,3,3], pads=[1,1,1,1])",
    "F.conv2d(a, b, padding=1)",
    [[128, 64, 56, 56], [64, 64, 3, 3]],
)
NORM = "layernormalization(a[16,64,256,256], b[64,256,256], c[64,256,256], axis=1)"
SPELLED = [
    *[
        spelled("conv2d_11x11", "crfm", FIRST, FIRST_TORCH, FIRST_SHAPES, t, flops=FIRST_FLOPS)
        for t in ("fp32", "tf32")
    ],
    *[
        spelled(
            "conv2d_relu_maxpool",
            "crfm",
            f"maxpool(relu({FIRST}), kernel_shape=[3,3], strides=[2,2])",
            f"F.max_pool2d(F.relu({FIRST_TORCH}), 3, 2)",
            FIRST_SHAPES,
            t,
            flops=FIRST_FLOPS,
        )
        for t in ("fp32", "tf32")
    ],
    spelled(
        "layernorm",
        "crfm",
        NORM,
        "F.layer_norm(a, b.shape, b, c)",
        [[16, 64, 256, 256], [64, 256, 256], [64, 256, 256]],
        "fp32",
    ),
    *[
        spelled("conv2d_3x3", "everyday", *SQUARE, t, d, SQUARE_FLOPS)
        for t, d in (("fp32", "fp32"), ("tf32", "fp32"), ("bf16", "bf16"))
    ],
    *[
        spelled(
            f"conv2d_3x3_{c}x{size}",
            "everyday",
            f"conv(a[128,{c},{size},{size}], b[{c},{c},3,3], pads=[1,1,1,1])",
            "F.conv2d(a, b, padding=1)",
            [[128, c, size, size], [c, c, 3, 3]],
            t,
            d,
            2.0 * 128 * c * c * size * size * 9,
        )
        for c, size in ((128, 28), (256, 14), (512, 7))
        for t, d in (("tf32", "fp32"), ("bf16", "bf16"))
    ],
    *[
        spelled(
            "conv_transposed_4x4",
            "everyday",
            "convtranspose(a[32,128,64,64], b[128,64,4,4], strides=[2,2], pads=[1,1,1,1])",
            "F.conv_transpose2d(a, b, stride=2, padding=1)",
            [[32, 128, 64, 64], [128, 64, 4, 4]],
            t,
            d,
            2.0 * 32 * 128 * 64 * 64 * 64 * 16,
        )
        for t, d in (("fp32", "fp32"), ("tf32", "fp32"), ("bf16", "bf16"))
    ],
    spelled(
        "upper_triangle_of_product",
        "everyday",
        "trilu(matmul(a[4096,4096], b[4096,4096]))",
        "torch.triu(a @ b)",
        [[4096, 4096]] * 2,
        "bf16",
        "bf16",
        4096 * 4097 * 4096,
    ),
    spelled(
        "product_of_lower_triangle",
        "everyday",
        "matmul(trilu(a[4096,4096], upper=0), b[4096,4096])",
        "torch.tril(a) @ b",
        [[4096, 4096]] * 2,
        "bf16",
        "bf16",
        4096 * 4097 * 4096,
    ),
    spelled(
        "gelu_chain",
        "everyday",
        "mul(gelu(add(a[16384,4096], b[4096])), c[16384,4096])",
        "F.gelu(a + b) * c",
        [[16384, 4096], [4096], [16384, 4096]],
        "fp32",
    ),
    spelled(
        "batchnorm_relu",
        "everyday",
        "relu(batchnormalization(a[64,64,128,128], b[64], c[64], d[64], abs(e[64])))",
        "F.relu(F.batch_norm(a, d, e.abs(), b, c))",
        [[64, 64, 128, 128], [64], [64], [64], [64]],
        "fp32",
    ),
    spelled(
        "sum_of_rows",
        "everyday",
        "reducesum(a[16384,16384], [1], keepdims=0)",
        "a.sum(1)",
        [[16384, 16384]],
        "fp32",
    ),
    spelled(
        "sum_of_columns",
        "everyday",
        "reducesum(a[16384,16384], [0], keepdims=0)",
        "a.sum(0)",
        [[16384, 16384]],
        "fp32",
    ),
    spelled(
        "maxpool_3x3",
        "everyday",
        "maxpool(a[64,64,112,112], kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1])",
        "F.max_pool2d(a, 3, 2, 1)",
        [[64, 64, 112, 112]],
        "fp32",
    ),
    *[
        spelled(
            f"cumsum_of_lines_{name}",
            "everyday",
            f"cumsum(a[{r},{c}], [{axis}])",
            f"a.cumsum({axis})",
            [[r, c]],
            "fp32",
        )
        for name, r, c, axis in (
            ("1x67108864", 1, 67108864, 1),
            ("4x1000003", 4, 1000003, 1),
            ("down_1048576x64", 1048576, 64, 0),
        )
    ],
    spelled(
        "transpose",
        "everyday",
        "transpose(a[8192,8192])",
        "a.T.contiguous()",
        [[8192, 8192]],
        "fp32",
    ),
]
# Operators over the columns of one matrix: as `warploom new` and as torch say them, and the shapes
# of their weights.
ROWWISE = {
    "layernorm": (
        "layernormalization(a[{r},{c}], b[{c}], c[{c}])",
        "F.layer_norm(a, b.shape, b, c)",
        2,
    ),
    "rmsnorm": ("rmsnormalization(a[{r},{c}], b[{c}])", "F.rms_norm(a, b.shape, b, 1e-5)", 1),
    "sum": ("reducesum(a[{r},{c}], [1], keepdims=0)", "a.sum(1)", 0),
    "max": ("reducemax(a[{r},{c}], [1], keepdims=0)", "a.amax(1)", 0),
    "argmax": ("argmax(a[{r},{c}], axis=1, keepdims=0)", "a.argmax(1)", 0),
    "cumsum": ("cumsum(a[{r},{c}], [1])", "a.cumsum(1)", 0),
}
SIZES = [(4096, 1024), (4096, 8192), (16384, 4096), (32768, 65536)]
ROWS = [
    *[softmax(t, *size) for size in SIZES for t in ("fp32", "bf16")],
    *[
        spelled(
            f"{name}_{r}x{c}",
            "rowwise",
            expression.format(r=r, c=c),
            function,
            [[r, c]] + [[c]] * weights,
            t,
            t,
        )
        for name, (expression, function, weights) in ROWWISE.items()
        for r, c in SIZES
        for t in ("fp32", "bf16")
    ],
]
DENSE = [
    (8192, 8192, 8192),
    (4096, 4096, 4096),
    (2048, 2048, 2048),
    (16384, 4096, 4096),
    (4096, 14336, 4096),
    (8192, 1024, 8192),
    (512, 512, 32768),
]
CASES = [
    *[matmul("bf16", *shape) for shape in DENSE],
    *[matmul("fp16", *shape) for shape in DENSE],
    *[
        matmul("bf16", m, n, k)
        for m in (1, 16, 64, 128)
        for n, k in ((4096, 4096), (14336, 4096), (4096, 14336))
    ],
    *[matmul("fp32", 4096, 4096, 4096, "tf32", majors) for majors in ("nn", "nt", "tn", "tt")],
    matmul("fp32", 4096, 4096, 4096),
    *[matmul("fp32", 512, 512, k) for k in (27, 147, 363, 4096)],
    matmul("bf16", 2049, 3073, 4097),
    *[
        scaled("e4m3", *shape, "nt")
        for shape in (
            (4096, 4096, 4096),
            (8192, 8192, 8192),
            (4096, 14336, 4096),
            (2049, 3073, 4097),
        )
    ],
    *[scaled("int8", *shape, "nt") for shape in ((4096, 4096, 4096), (2049, 3073, 4097))],
    scaled("e4m3", 4096, 4096, 4096),
    *[
        in_blocks("e4m3", *shape)
        for shape in ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096))
    ],
    softmax("fp32", 4096, 65536),
    *ROWS,
    softmax("fp32", 4096, 393216),
    *SPELLED,
]
