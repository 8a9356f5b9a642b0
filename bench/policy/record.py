#!/usr/bin/env python3
"""Records outcomes.gz, what the shipped policy is trained and compared on, in parts.

  record.py WARPLOOM draw             the problems, and the plans of closed ones; nothing runs
  record.py WARPLOOM grow SEED        more plans of those that grow
  record.py WARPLOOM compile SECONDS  what has no outcome yet
  record.py WARPLOOM measure SECONDS  the same; wants a machine with nothing else to do

Every step goes on where earlier ones stopped: draw, compile and measure once, then grow, compile
and measure as often as plans are wanted. Problems take 20 us to 2 ms on two cores.
"""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
OUTCOMES = HERE / "outcomes.gz"
PLANS_OF_CLOSED = 120
PLANS_A_ROUND = 32

# Name: the problem, as `warploom new` takes it. Products and convolutions have spaces of thousands
# of plans, which grow; of others a sub-space is recorded whole.
GROWN = {
    "matmul_bias_256": "matmul(x[256,256], w[256,256]) + b[256]",
    "matmul_few_rows": "matmul(x[64,1024], w[1024,512])",
    "matmul_relu_512": "relu(matmul(x[512,384], w[384,512]) + b[512])",
    "matmul_gelu_768": "gelu(matmul(x[192,768], w[768,768]) + b[768])",
    "matmul_batched": "matmul(x[8,128,64], w[8,64,128])",
    "matmul_odd": "matmul(x[333,257], w[257,129])",
    "matmul_one_row": "matmul(x[1,2048], w[2048,1024])",
    "matmul_deep": "matmul(x[96,4096], w[4096,64])",
    "conv_3x3_32": "conv(x[1,32,28,28], w[64,32,3,3], pads=1)",
    "conv_1x1_64": "relu(conv(x[1,64,28,28], w[128,64,1,1], b[128]))",
    "conv_stride_2": "conv(x[2,16,56,56], w[32,16,3,3], strides=2, pads=1)",
    "conv_7x7_3": "relu(conv(x[1,3,64,64], w[32,3,7,7], b[32], pads=3))",
    "conv_5x5_batch": "conv(x[4,24,20,20], w[48,24,5,5], pads=2)",
}
CLOSED = {
    "softmax_1024": "softmax(x[512,1024])",
    "softmax_64": "softmax(x[4096,64])",
    "layernorm_768": "layernorm(x[256,768], g[768], b[768])",
    "logsoftmax_300": "logsoftmax(x[1000,300])",
    "rmsnorm_4096": "rmsnorm(x[128,4096], g[4096])",
    "sum_1024": "sum(x[512,1024])",
    "max_16384": "max(x[64,16384])",
    "transpose_wide": "transpose(x[512,1024])",
    "relu_add": "relu(x[512,1024]) + y[512,1024]",
    "average_pool": "averagepool2d(x[4,16,64,64], kernel=2)",
    "sum_of_columns": "sum(x[1024,512], axes=0)",
    "depthwise_28": "conv(x[1,64,28,28], w[64,1,3,3], pads=1, groups=64)",
    "gelu_odd": "gelu(x[700,333])",
}
HELD_OUT = {
    "held_matmul_bias": "matmul(x[200,320], w[320,480]) + b[480]",
    "held_matmul_deep": "matmul(x[128,2048], w[2048,256])",
    "held_matmul_gelu": "gelu(matmul(x[384,96], w[96,640]) + b[640])",
    "held_conv_3x3": "conv(x[1,48,32,32], w[96,48,3,3], pads=1)",
    "held_conv_1x1": "relu(conv(x[2,96,14,14], w[64,96,1,1], b[64]))",
    "held_conv_stride": "conv(x[1,8,72,72], w[24,8,5,5], strides=2, pads=2)",
    "held_softmax": "softmax(x[300,2000])",
    "held_layernorm": "layernorm(x[1024,512], g[512], b[512])",
    "held_rmsnorm": "rmsnorm(x[2048,256], g[256])",
    "held_transpose": "transpose(x[700,900])",
    "held_max_pool": "maxpool2d(x[2,32,48,48], kernel=2)",
    "held_depthwise": "conv(x[2,48,20,20], w[48,1,5,5], pads=2, groups=48)",
}


def record(warploom, *words):
    line = [warploom, "record", *map(str, words), "--into", str(OUTCOMES), "--target", "cpu"]
    subprocess.run(line, check=True)


def draw(warploom, problems, *words):
    with tempfile.TemporaryDirectory() as folder:
        models = []
        for name, text in problems.items():
            models.append(f"{folder}/{name}.onnx")
            made = [warploom, "new", text, "--out", models[-1]]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        record(warploom, *models, "--phase", "propose", *words)


def main():
    warploom, step, *rest = sys.argv[1:]
    if step == "draw":
        closed = ["--closed", "--plans", PLANS_OF_CLOSED]
        draw(warploom, HELD_OUT, "--hold-out", *closed)
        draw(warploom, CLOSED, *closed)
        draw(warploom, GROWN)
    elif step == "grow":
        record(warploom, "--phase", "propose", "--plans", PLANS_A_ROUND, "--seed", rest[0])
    else:
        record(warploom, "--phase", step, "--budget", rest[0])


main()
