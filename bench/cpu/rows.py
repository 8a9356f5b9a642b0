"""The rows of bench/results/<cpu>/cpu.json: what is computed, as `warploom new` reads it.

A row's group says what it is held to (bench/goals.json). Inputs called `w`, `v`, `u`, `b`, `g`,
`d`, `m`, `s` are weights, the same in every call, but in the groups `matmul`, `skinny` and `half`
(products of bf16), where all are inputs of each call. Rows with `few` are those that a machine of
many cores measures, at most 45.
"""

import dataclasses
import re

GROUPS = ("matmul", "skinny", "half", "epilogue", "conv", "chain", "row")
WEIGHTS = ("w", "v", "u", "b", "g", "d", "m", "s")


@dataclasses.dataclass
class Row:
    case: str  # begins with its group
    group: str
    text: str  # what `warploom new` reads; or a file of examples/
    flops: float = 0
    few: bool = False
    dtype: str = "f32"
    times: int = 1  # so many budgets, of what takes seconds in FP64

    def constants(self):
        if self.group in ("matmul", "skinny", "half") or "(" not in self.text:
            return []
        named = re.findall(r"\b(\w+)\[", self.text)
        return [name for name in dict.fromkeys(named) if name in WEIGHTS]


def matmuls():
    for n in (64, 128, 256, 512, 1024, 2048, 4096):
        yield Row(
            f"matmul_{n}x{n}x{n}",
            "matmul",
            f"matmul(x[{n},{n}], w[{n},{n}])",
            2 * n**3,
            few=True,
            times=6 if n > 2048 else 1,
        )


HALF = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (128, 4096, 4096)]  # m, n, k


def halves():
    for m, n, k in HALF:
        text = f"matmul(x[{m},{k}], w[{k},{n}])"
        yield Row(f"half_bf16_{m}x{n}x{k}", "half", text, 2 * m * n * k, dtype="bf16")


SKINNY = [  # m, n, k, few
    (1, 1024, 1024, False),
    (1, 4096, 4096, True),
    (1, 11008, 4096, False),
    (1, 3072, 768, False),
    (4, 4096, 4096, False),
    (8, 2048, 8192, True),
    (16, 4096, 4096, False),
    (32, 1024, 4096, True),
    (64, 3072, 768, False),
    (2048, 1, 4096, False),
    (4096, 16, 4096, True),
    (2048, 64, 2048, False),
    (8192, 32, 512, False),
    (100000, 16, 16, False),
    (64, 64, 16384, True),
    (2048, 512, 512, False),
    (127, 255, 511, False),
    (333, 777, 555, False),
    (1000, 1000, 1000, True),
    (1025, 1023, 1024, False),
]
BATCHED = [  # batch, m, n, k, few
    (64, 64, 64, 64, False),
    (16, 128, 128, 128, True),
    (12, 512, 512, 64, True),
    (12, 512, 64, 512, False),
]


def skinny():
    for m, n, k, few in SKINNY:
        text = f"matmul(x[{m},{k}], w[{k},{n}])"
        yield Row(f"skinny_{m}x{n}x{k}", "skinny", text, 2 * m * n * k, few)
    for b, m, n, k, few in BATCHED:
        text = f"matmul(x[{b},{m},{k}], w[{b},{k},{n}])"
        yield Row(f"skinny_batched_{b}x{m}x{n}x{k}", "skinny", text, 2 * b * m * n * k, few)


EPILOGUES = [  # name, with {mm} for the product, m, n, k, few
    ("bias_gelu", "gelu(add({mm}, b[{n}]))", 512, 768, 1024, True),
    ("bias_relu", "relu(add({mm}, b[{n}]))", 1024, 4096, 1024, False),
    ("bias_relu", "relu(add({mm}, b[{n}]))", 32, 1024, 1024, True),
    ("bias_relu", "relu(add({mm}, b[{n}]))", 128, 256, 128, False),
    ("residual", "add(add({mm}, b[{n}]), r[{m},{n}])", 512, 1024, 4096, False),
    ("silu", "silu(add({mm}, b[{n}]))", 2048, 512, 512, False),
    (
        "residual_layernorm",
        "layernorm(add(add({mm}, b[{n}]), r[{m},{n}]), g[{n}], d[{n}])",
        512,
        768,
        3072,
        True,
    ),
    ("rmsnorm", "rmsnorm({mm}, g[{n}])", 1024, 1024, 1024, False),
    ("softmax", "softmax({mm}, axis=-1)", 1024, 1024, 256, True),
    ("tanh_scale", "mul(tanh({mm}), s[{n}])", 777, 1000, 333, False),
]


def epilogues():
    for name, text, m, n, k, few in EPILOGUES:
        product = f"matmul(x[{m},{k}], w[{k},{n}])"
        whole = text.format(mm=product, m=m, n=n)
        yield Row(f"epilogue_{name}_{m}x{n}x{k}", "epilogue", whole, 2 * m * n * k, few)


CONVOLUTIONS = [  # C, H, CO, K, stride, groups, few of batch 1, few of batch 8
    # ResNet-50
    (3, 224, 64, 7, 2, 1, True, False),
    (64, 56, 64, 1, 1, 1, False, False),
    (64, 56, 64, 3, 1, 1, True, True),
    (64, 56, 256, 1, 1, 1, False, True),
    (256, 56, 128, 1, 1, 1, False, False),
    (128, 56, 128, 3, 2, 1, False, False),
    (128, 28, 128, 3, 1, 1, False, False),
    (512, 28, 128, 1, 1, 1, False, False),
    (256, 14, 256, 3, 1, 1, True, False),
    (1024, 14, 256, 1, 1, 1, False, False),
    (512, 7, 512, 3, 1, 1, False, True),
    (512, 7, 2048, 1, 1, 1, False, False),
    # MobileNet
    (32, 112, 32, 3, 1, 32, False, True),
    (64, 112, 64, 3, 2, 64, True, False),
    (128, 56, 128, 3, 1, 128, False, False),
    (512, 14, 512, 3, 1, 512, False, True),
    (32, 112, 64, 1, 1, 1, False, False),
    (128, 56, 128, 1, 1, 1, False, False),
    (512, 14, 512, 1, 1, 1, True, False),
]


def convolution_text(batch, c, h, co, k, stride, groups):
    pad = k // 2
    return (
        f"conv(x[{batch},{c},{h},{h}], w[{co},{c // groups},{k},{k}], b[{co}], "
        f"strides={stride}, pads={pad}, groups={groups})"
    )


def convolutions():
    for c, h, co, k, stride, groups, few_1, few_8 in CONVOLUTIONS:
        for batch, few in ((1, few_1), (8, few_8)):
            side = (h + 2 * (k // 2) - k) // stride + 1
            flops = 2 * batch * co * side * side * c // groups * k * k
            kind = f"{'depthwise_' if groups > 1 else ''}{k}x{k}" + f"_s{stride}" * (stride > 1)
            name = f"conv_{kind}_{batch}x{c}x{h}x{h}_to_{co}"
            text = convolution_text(batch, c, h, co, k, stride, groups)
            yield Row(name, "conv", text, flops, few)


CHAINS = [  # name, text, flops, few
    ("chain_first_command", "examples/conv_relu_maxpool.textproto", 2 * 8 * 32 * 56**2 * 144, True),
    (
        "chain_conv_relu_pool_64",
        "maxpool(relu(conv(x[8,64,56,56], w[64,64,3,3], b[64], pads=1)), 2)",
        2 * 8 * 64 * 56**2 * 576,
        False,
    ),
    (
        "chain_conv_bn_relu_pool",
        "maxpool(relu(batchnorm(conv(x[4,32,64,64], w[64,32,3,3], pads=1), "
        "g[64], d[64], m[64], s[64])), 2)",
        2 * 4 * 64 * 64**2 * 288,
        True,
    ),
    (
        "chain_depthwise_pointwise",
        "relu(conv(relu(depthwise_conv(x[4,64,56,56], w[64,1,3,3], b[64], pads=1)), "
        "v[128,64,1,1], d[128]))",
        2 * 4 * 56**2 * 64 * (9 + 128),
        True,
    ),
    (
        "chain_attention",
        "attention(q[12,512,64], k[12,512,64], t[12,512,64])",
        4 * 12 * 512**2 * 64,
        True,
    ),
    (
        "chain_causal_attention",
        "causal_attention(q[12,512,64], k[12,512,64], t[12,512,64])",
        2 * 12 * 512**2 * 64,
        False,
    ),
    (
        "chain_mlp",
        "mlp(x[256,768], w[3072,768], b[3072], v[768,3072], d[768])",
        4 * 256 * 768 * 3072,
        True,
    ),
    (
        "chain_layernorm_linear",
        "linear(layernorm(x[512,768], g[768], d[768]), w[768,768], b[768])",
        2 * 512 * 768 * 768,
        False,
    ),
    (
        "chain_swiglu",
        "swiglu(x[128,512], w[1376,512], v[1376,512], u[512,1376])",
        6 * 128 * 512 * 1376,
        False,
    ),
]


def chains():
    for name, text, flops, few in CHAINS:
        yield Row(name, "chain", text, flops, few)
    text = "mlp(x[256,768], w[3072,768], b[3072], v[768,3072], d[768])"
    yield Row("chain_mlp_bf16", "chain", text, 4 * 256 * 768 * 3072, False, dtype="bf16")


LINES = [  # name, text, few
    ("row_softmax_512x65536", "softmax(x[512,65536], axis=-1)", True),
    ("row_softmax_8192x4096", "softmax(x[8192,4096], axis=-1)", False),
    ("row_layernorm_8192x4096", "layernorm(x[8192,4096], g[4096], d[4096])", True),
    ("row_rmsnorm_8192x4096", "rmsnorm(x[8192,4096], g[4096])", False),
    ("row_sum_8192x8192", "sum(x[8192,8192], -1)", False),
    ("row_sum_columns_8192x8192", "sum(x[8192,8192], 0)", True),
    ("row_maxpool_3x3_s2", "maxpool(x[40,64,112,112], 3, strides=2, pads=1)", True),
    ("row_maxpool_2x2_s2", "maxpool(x[40,64,112,112], 2)", True),
    ("row_avgpool_3x3_s1", "avgpool(x[160,64,56,56], 3, strides=1, pads=1)", True),
    ("row_gelu_bias_8192x4096", "gelu(add(x[8192,4096], b[4096]))", True),
    ("row_add_8192x4096", "add(x[8192,4096], y[8192,4096])", False),
    ("row_silu_8192x8192", "silu(x[8192,8192])", False),
    (
        "row_batchnorm_relu",
        "relu(batchnorm(x[64,128,56,56], g[128], d[128], m[128], s[128]))",
        True,
    ),
    ("row_transpose_8192x8192", "transpose(x[8192,8192])", True),
    ("row_transpose_heads", "transpose(x[32,1024,16,64], perm=[0,2,1,3])", False),
    ("row_transpose_channels_last", "transpose(x[32,64,112,112], perm=[0,2,3,1])", True),
    ("row_cumsum_8192x4096", "cumsum(x[8192,4096], -1)", True),
    ("row_cumsum_columns_8192x8192", "cumsum(x[8192,8192], 0)", False),
]


def lines():
    for name, text, few in LINES:
        yield Row(name, "row", text, 0, few)


def all_rows():
    return [*matmuls(), *skinny(), *halves(), *epilogues(), *convolutions(), *chains(), *lines()]
