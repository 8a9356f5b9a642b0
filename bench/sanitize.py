"""The programs that compute-sanitizer watches: small plans of every kind of kernel, launched once
each on random inputs.

    python3 bench/sanitize.py --warploom build/release/warploom --make FOLDER
        # on any machine: writes the plans of PLANS
    compute-sanitizer --tool memcheck python3 bench/sanitize.py FOLDER
        # likewise racecheck, synccheck, initcheck

Exit status 1: a plan could not be made, or left part of its outputs unwritten.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import cases
import search

WGMMA = (
    "matmul_wgmma block_k={k} block_m={m} block_n={n} cluster={cluster} consumers={consumers} "
    "exchange={exchange} group=8 resident=1 split={split} "
    "stages={stages} stream={stream} through_shared={through_shared}{more}"
)
SIMT = (
    "matmul_simt block_k=16 block_m=64 block_n=64 group=8 solution=0 split={split} stages=3 warps=4"
)
ROWWISE = (
    "rowwise blocks={blocks} chunk={chunk} cluster={cluster} place={place} rows=1 "
    "stages={stages} warps={warps}"
)
LAYERNORM = "layernormalization(a[{r},{c}], b[{c}], c[{c}])"


def wgmma(
    m,
    n,
    k,
    stages,
    consumers=2,
    cluster=1,
    exchange=0,
    split=1,
    stream=0,
    through_shared=1,
    more="",
):
    return WGMMA.format(**locals())


def rowwise(chunk, cluster, stages, warps, blocks, place=3):
    return ROWWISE.format(**locals())


def new(expression, track="fp32", dtype="fp32"):
    return cases.spelled("", "", expression, "", [], track, dtype)


def layernorm(rows, columns):
    return new(LAYERNORM.format(r=rows, c=columns))


# A plan's name, its problem, and its schedule.
PLANS = [
    (
        "argmax_streamed",
        new("argmax(a[64,8192], axis=1, keepdims=0)"),
        rowwise(4, 1, 2, 8, 2, place=2),
    ),
    (
        "conv_fp32",
        new("conv(a[2,3,40,40], b[96,3,11,11], c[96], strides=[4,4], pads=[2,2,2,2])"),
        "im2win apart=0 block_n=96 channels=1 cluster=2 consumers=2 stages=3 stay=0 taps=4 "
        "through_shared=1 x=8 y=8",
    ),
    (
        "conv_fp32_apart",
        new("conv(a[140,3,40,40], b[96,3,11,11], c[96], strides=[4,4], pads=[2,2,2,2])"),
        "im2win apart=1 block_n=96 channels=1 cluster=1 consumers=3 stages=3 stay=1 taps=4 "
        "through_shared=0 x=8 y=8",
    ),
    (
        "conv_tf32_apart",
        new("conv(a[140,3,40,40], b[96,3,11,11], c[96], strides=[4,4], pads=[2,2,2,2])", "tf32"),
        "im2win apart=1 block_n=96 channels=1 cluster=1 consumers=2 stages=3 stay=1 taps=6 "
        "through_shared=0 x=16 y=4",
    ),
    (
        "gemm_softmax",
        new("softmax(matmul(a[2304,64], b[64,200]))", "bf16", "bf16"),
        wgmma(64, 64, 64, 3, consumers=1),
    ),
    (
        "cumsum",
        new("cumsum(a[64,4096], [1])"),
        "direct lanes=1 together=1 unroll=1 warps=8 x=1024 y=1",
    ),
    (
        "cumsum_together",
        new("cumsum(a[3,40001], [1])"),
        "direct lanes=1 together=32 unroll=1 warps=4 x=512 y=1",
    ),
    (
        "gemm_e4m3",
        cases.scaled("e4m3", 256, 384, 320, "nt"),
        wgmma(128, 176, 128, 3, through_shared=0, more=" run=1"),
    ),
    ("layernorm_whole", layernorm(1100, 1024), rowwise(4, 1, 2, 8, 2, place=0)),
    ("layernorm_cluster", layernorm(64, 65536), rowwise(8, 8, 2, 4, 3)),
    ("layernorm_keep", layernorm(200, 65536), rowwise(8, 8, 3, 8, 1)),
    ("layernorm_keep_memory", layernorm(6, 4194304), rowwise(8, 128, 1, 16, 1)),
    ("mm_bf16", cases.matmul("bf16", 512, 384, 320), wgmma(128, 128, 64, 3, cluster=2)),
    ("mm_blocks", cases.in_blocks("e4m3", 256, 256, 1024), wgmma(128, 128, 128, 4, more=" run=8")),
    (
        "mm_fp32",
        cases.matmul("fp32", 256, 384, 130),
        wgmma(128, 176, 32, 2, through_shared=0, more=" run=1 halves=0"),
    ),
    (
        "mm_fp32_halves",
        cases.matmul("fp32", 256, 384, 130),
        wgmma(128, 96, 64, 2, cluster=2, more=" run=1 halves=1"),
    ),
    (
        "mm_fp32_mma",
        cases.matmul("fp32", 256, 384, 130),
        "matmul_mma block_k=16 block_m=16 block_n=32 group=1 solution=0 stages=4 warps=4",
    ),
    ("mm_run", cases.scaled("e4m3", 256, 256, 1024, "nt"), wgmma(128, 128, 128, 4, more=" run=4")),
    ("mm_simt", cases.matmul("fp32", 300, 264, 500), SIMT.format(split=2)),
    ("mm_stream", cases.matmul("bf16", 1536, 1536, 192), wgmma(128, 128, 64, 4, stream=1)),
    *[
        (
            f"mm_tf32_across{name}",
            cases.matmul("fp32", 256, 384, k, "tf32"),
            wgmma(*tile, exchange=1, through_shared=0, more=" across=1", **fields),
        )
        for name, k, tile, fields in (
            ("", 160, (128, 128, 32, 3), {}),
            ("_cluster", 160, (64, 64, 32, 3), {"consumers": 1, "cluster": 2}),
            ("_split", 1000, (128, 128, 32, 3), {"split": 2}),
        )
    ],
    ("softmax", cases.softmax("fp32", 64, 65536), rowwise(4, 8, 2, 8, 3)),
    ("softmax_cluster", cases.softmax("fp32", 200, 65536), rowwise(4, 8, 3, 8, 1)),
    ("softmax_cluster_pieces", cases.softmax("bf16", 200, 65536), rowwise(8, 4, 2, 8, 2)),
    (
        "tri_factor",
        new("matmul(trilu(a[512,512], upper=0), b[512,512])", "bf16", "bf16"),
        wgmma(128, 128, 64, 4, cluster=2, exchange=1),
    ),
    (
        "tri_product",
        new("trilu(matmul(a[512,512], b[512,512]))", "bf16", "bf16"),
        wgmma(128, 128, 64, 4, cluster=2),
    ),
    ("tri_simt", new("matmul(trilu(a[320,320], upper=0), b[320,200])"), SIMT.format(split=1)),
]


def make(options):
    made = 0
    options.make.mkdir(parents=True, exist_ok=True)
    for name, (row, text), schedule in PLANS:
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "model.textproto"
            plan, said = search.shown(options, source, row, text, schedule)
        if plan:
            (options.make / f"{name}.json").write_text(
                json.dumps(row | {"case": name, "schedule": schedule, "plan": plan}) + "\n"
            )
            made += 1
        else:
            print(f"{name}: {said}", file=sys.stderr)
    print(f"{made} of {len(PLANS)} plans in {options.make}")
    return 0 if made == len(PLANS) else 1


def launch_all(folder):
    import torch

    import launch

    paths, whole = sorted(folder.glob("*.json")), 0
    for path in paths:
        row = json.loads(path.read_text())
        loaded = launch.Loaded(row["plan"])
        buffers = {}
        for spec in row["plan"]["inputs"]:
            buffers[spec["name"]] = torch.randn(spec["shape"], device="cuda").to(
                launch.TORCH_TYPES[spec["dtype"]]
            )
        for spec in row["plan"]["outputs"]:
            dtype = launch.TORCH_TYPES[spec["dtype"]]
            poison = float("nan") if dtype.is_floating_point else -1
            buffers[spec["name"]] = torch.full(spec["shape"], poison, device="cuda", dtype=dtype)
        loaded.launch(loaded.bind(buffers))
        torch.cuda.synchronize()
        outputs = [buffers[spec["name"]] for spec in row["plan"]["outputs"]]
        written = all(
            bool((out.isfinite() if out.is_floating_point() else out != -1).all())
            for out in outputs
        )
        whole += written
        print(
            f"{row['case']:<32} {row.get('schedule', '')}: "
            f"{'written' if written else 'NOT ALL WRITTEN'}",
            flush=True,
        )
    print(f"{whole} of {len(paths)} plans wrote all of their outputs")
    return 0 if paths and whole == len(paths) else 1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plans", type=pathlib.Path, nargs="?", help="a folder of plans to launch")
    parser.add_argument("--warploom")
    parser.add_argument("--make", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.make and options.warploom and not options.plans:
        return make(options)
    if options.plans and not options.make:
        return launch_all(options.plans)
    parser.error("name a folder to launch, or both --warploom and --make")


if __name__ == "__main__":
    sys.exit(main())
