"""Re-measures stored plans beside their peers and writes bench/results/<card>/<group>.json.

    python3 bench/measure.py --plans bench/plans/h200 [--out FOLDER] [--group dense] \
        [--case gemm_bf16_4096x4096x4096]

A plan file is {"case", "group", "dtype", "track", "schedule", "candidates", "search_seconds",
"problem": {…}, "plan": launch list}; `problem` is {"kind": "matmul", "m", "n", "k", "transpose_a",
"transpose_b"} or {"kind": "softmax", "rows", "columns"}. Every row: fresh random inputs, poisoned
outputs, error against FP64 on this GPU for ours and for each peer, both tracks' peers at the same
precision, speeds from one alternating run. Every row carries the commit that it was measured at,
the file's head that of the newest. Exit status 1: a plan failed, and the row that it had stays, or
none was measured."""
import argparse
import json
import pathlib
import sys

import torch

import gpu
import launch
import cases
import timing

# Below that, calls are timed as graphs of at least so many, since starting a graph takes some
# microseconds.
SHORT_US = 100
LEAST_CALLS = 10
# Rows beside which torch.compile also tunes kernels of its own, Triton's among them, for half a
# minute each.
AUTOTUNED = (
    "gemm_bf16_2048x2048x2048",
    "gemm_bf16_4096x4096x4096",
    "gemm_bf16_1x14336x4096",
    "gemm_bf16_128x4096x4096",
    "softmax_fp32_4096x65536",
    "rmsnorm_4096x8192_bf16",
    "layernorm_fp32",
    "conv2d_relu_maxpool_tf32",
)


def relative_error(got, want):
    worst = 0.0
    difference = size = 0.0
    for g, w in zip(got.split(1024), want.split(1024)):
        d = g.double() - w
        difference += float((d * d).sum())
        size += float((w * w).sum())
        worst = max(worst, float(d.abs().max()))
    if not torch.isfinite(got).all():
        return float("inf")
    return (difference / size) ** 0.5


class Matmul:
    def __init__(self, row):
        p = row["problem"]
        self.m, self.n, self.k, self.track = p["m"], p["n"], p["k"], row["track"]
        self.dtype = launch.TORCH_TYPES[
            {"bf16": "bf16", "fp16": "f16", "f16": "f16"}.get(row["dtype"], "f32")
        ]
        self.flops = 2.0 * self.m * self.n * self.k
        self.bytes = (self.m * self.k + self.k * self.n + self.m * self.n) * self.dtype.itemsize

        self.turned = [p.get("transpose_a", False), p.get("transpose_b", False)]

    def inputs(self):
        shapes = (self.m, self.k), (self.k, self.n)
        return [
            torch.randn(s[::-1] if t else s, device="cuda").to(self.dtype)
            for s, t in zip(shapes, self.turned)
        ]

    def operands(self, x):
        return [t.T if turned else t for t, turned in zip(x, self.turned)]

    def reference(self, x):
        a, b = self.operands(x)
        return torch.cat([part.double() @ b.double() for part in a.split(2048)])

    def output(self):
        return torch.full((self.m, self.n), float("nan"), device="cuda", dtype=self.dtype)

    def peers(self):
        torch.backends.cuda.matmul.allow_tf32 = self.track == "tf32"
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        return {"cublas": lambda x, y: torch.mm(*self.operands(x), out=y)}

    def function(self, *x):
        return torch.mm(*self.operands(x))


class Scaled(Matmul):
    """8-bit operands with one scale each; results in bf16."""

    def __init__(self, row):
        super().__init__(row)
        self.narrow = launch.TORCH_TYPES[{"int8": "i8"}.get(row["dtype"], row["dtype"])]
        self.dtype, self.scales = torch.bfloat16, row["problem"]["scales"]
        self.bytes = self.m * self.k + self.k * self.n + 2.0 * self.m * self.n

    def inputs(self):
        shapes = (self.m, self.k), (self.k, self.n)
        shapes = [s[::-1] if t else s for s, t in zip(shapes, self.turned)]
        if self.narrow == torch.int8:
            return [torch.randint(-128, 128, s, device="cuda", dtype=torch.int8) for s in shapes]
        return [torch.randn(s, device="cuda").to(self.narrow) for s in shapes]

    def reference(self, x):
        a, b = self.operands(x)
        wide = b.double()
        return torch.cat([part.double() @ wide for part in a.split(2048)]) * (
            self.scales[0] * self.scales[1]
        )

    def peers(self):
        factors = [torch.tensor(s, device="cuda") for s in self.scales]
        a_in_rows, b_in_columns = not self.turned[0], self.turned[1]
        whole = (
            self.m % 16 == 0
            and self.n % 16 == 0
            and self.k % 16 == 0
            and a_in_rows
            and b_in_columns
        )

        def as_bf16(x, y):
            a, b = self.operands(x)
            torch.mm(a.bfloat16(), b.bfloat16(), out=y)
            y.mul_(self.scales[0] * self.scales[1])

        peers = {"torch_bf16": as_bf16}
        if whole and self.narrow != torch.int8:
            peers["cublaslt"] = lambda x, y: torch._scaled_mm(
                *self.operands(x), *factors, out_dtype=torch.bfloat16, out=y
            )
            peers["cublaslt_fast"] = lambda x, y: torch._scaled_mm(
                *self.operands(x), *factors, out_dtype=torch.bfloat16, use_fast_accum=True, out=y
            )
        if whole and self.narrow == torch.int8:

            def integers(x, y):  # without scaling its sums, which stay integers
                self.sums = torch._int_mm(*self.operands(x))

            peers["cublaslt_int32"] = integers
        return peers


class Blocks(Scaled):
    """The same with tensors of scales: of 1x128 elements of the first operand, of 128x128 of the
    second."""

    def inputs(self):
        scales = [
            torch.rand(s, self.k // 128, device="cuda") + 0.5 for s in (self.m, self.n // 128)
        ]
        return super().inputs() + scales

    def whole(self, x, dtype):
        a, b = self.operands(x[:2])
        return (
            a.to(dtype) * x[2].to(dtype).repeat_interleave(128, 1),
            b.to(dtype) * x[3].t().to(dtype).repeat_interleave(128, 0).repeat_interleave(128, 1),
        )

    def reference(self, x):
        a, b = self.whole(x, torch.float64)
        return torch.cat([part @ b for part in a.split(2048)])

    def peers(self):
        def cublaslt(
            x, y
        ):  # its scales lie along the first operand's rows; that order is made outside of the time
            if id(x[2]) not in self.turned_scales:
                self.turned_scales[id(x[2])] = x[2].t().contiguous().t()
            torch._scaled_mm(
                *self.operands(x[:2]),
                self.turned_scales[id(x[2])],
                x[3].t(),
                out_dtype=torch.bfloat16,
                out=y,
            )

        self.turned_scales = {}
        return {
            "cublaslt_blocks": cublaslt,
            "torch_bf16": lambda x, y: torch.mm(*self.whole(x, torch.bfloat16), out=y),
        }


class Softmax:
    def __init__(self, row):
        p = row["problem"]
        self.rows, self.columns = p["rows"], p["columns"]
        self.dtype = launch.TORCH_TYPES[{"bf16": "bf16", "fp16": "f16"}.get(row["dtype"], "f32")]
        self.flops = 0.0
        self.bytes = 2.0 * self.rows * self.columns * self.dtype.itemsize

    def inputs(self):
        return [torch.randn(self.rows, self.columns, device="cuda").to(self.dtype)]

    def reference(self, x):
        return torch.cat([torch.softmax(part.double(), -1) for part in x[0].split(512)])

    def output(self):
        return torch.full((self.rows, self.columns), float("nan"), device="cuda", dtype=self.dtype)

    def function(self, a):
        return torch.softmax(a, -1)

    def peers(self):
        compiled = torch.compile(self.function)
        return {
            "torch_eager": lambda x, y: torch.softmax(x[0], -1, out=y),
            "torch_compile": lambda x, y: compiled(x[0]),
        }


class Torch:
    """A function of torch: run as it is, compiled, and in fp64 as the reference."""

    def __init__(self, row):
        p = row["problem"]
        self.function = eval(p["function"], {"torch": torch, "F": torch.nn.functional})
        self.shapes, self.track, self.flops, self.rowwise = (
            p["shapes"],
            row["track"],
            p["flops"],
            row["group"] == "rowwise",
        )
        self.dtype = launch.TORCH_TYPES[{"bf16": "bf16", "fp16": "f16"}.get(row["dtype"], "f32")]
        with torch.no_grad():
            self.like = self.function(
                *[torch.zeros(s, device="cuda", dtype=self.dtype) for s in self.shapes]
            )
        self.bytes = float(
            sum(torch.Size(s).numel() for s in self.shapes) * self.dtype.itemsize + self.like.nbytes
        )

    def inputs(self):
        return [torch.randn(s, device="cuda").to(self.dtype) for s in self.shapes]

    def reference(self, x):
        parts = x[0].split(2048) if self.rowwise else [x[0]]
        return torch.cat(
            [
                self.compared(part, self.function(*[t.double() for t in [part, *x[1:]]]))
                for part in parts
            ]
        ).flatten()[None]

    def compared(self, x, y):
        """y itself; of places, which any of several equals may take, the elements there."""
        if self.like.is_floating_point():
            return y
        if bool(((y < 0) | (y >= x.shape[1])).any()):
            raise ValueError("a place outside its row")
        return x.double().gather(1, y[:, None])

    def output(self):
        poison = float("nan") if self.like.is_floating_point() else 1 << 40
        return torch.full(self.like.shape, poison, device="cuda", dtype=self.like.dtype)

    def peers(self):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = (
            self.track == "tf32"
        )
        torch.backends.cudnn.benchmark = True
        torch._dynamo.reset()  # or the compiler gives up after so many functions
        compiled = torch.compile(self.function)
        return {
            "torch_eager": lambda x, y: self.function(*x),
            "torch_compile": lambda x, y: compiled(*x),
        }


KINDS = {"torch": Torch, "matmul": Matmul, "scaled": Scaled, "blocks": Blocks, "softmax": Softmax}


def measure(row, seconds):
    problem = KINDS[row["problem"]["kind"]](row)
    loaded = launch.Loaded(row["plan"])
    sets, bound = [], []
    names = [i["name"] for i in row["plan"]["inputs"]], row["plan"]["outputs"][0]["name"]

    def sets_of(count):
        while len(sets) < count:
            x, y = problem.inputs(), problem.output()
            sets.append((x, y))
            bound.append(loaded.bind({**dict(zip(names[0], x)), names[1]: y}))
        return count

    # Sets that together are larger than twice the L2, so that short calls find nothing of theirs
    # there.
    count = sets_of(min(64, max(2, int(2.5 * gpu.L2_BYTES / problem.bytes) + 1)))
    x, y = sets[0]
    want = problem.reference(x)
    loaded.launch(bound[0])
    torch.cuda.synchronize()
    compared = (
        lambda y: problem.compared(x[0], y).flatten()[None] if isinstance(problem, Torch) else y
    )
    error = relative_error(compared(y), want)
    peers = problem.peers()
    if row["case"] in AUTOTUNED:
        tuned = torch.compile(problem.function, mode="max-autotune-no-cudagraphs")
        peers["torch_autotuned"] = lambda x, y: tuned(*x)
    peer_errors = {}
    for name, call in peers.items():
        y.copy_(problem.output())
        result = call(x, y)
        if name == "cublaslt_int32":
            peer_errors[name] = 0.0
            continue
        got = (
            result
            if isinstance(problem, Torch) or name in ("torch_compile", "torch_autotuned")
            else y
        )
        peer_errors[name] = relative_error(compared(got), want)
    del want
    calls = {"ours": lambda turn: loaded.launch(bound[turn % count])}
    for name, call in peers.items():
        calls[name] = lambda turn, call=call: call(sets[turn % count][0], sets[turn % count][1])
    samples = timing.alternate(calls, 0.05)
    short = timing.median(samples["ours"]) < SHORT_US
    if short:
        count = sets_of(max(count, LEAST_CALLS))
    samples = (
        timing.alternate_graphs(calls, count, seconds)
        if short
        else timing.alternate(calls, seconds)
    )
    us = {name: timing.median(values) for name, values in samples.items()}
    best = min(peers, key=lambda name: us[name])
    card = gpu.card(torch.cuda.get_device_name(0))
    floor = card and max(
        problem.flops / (card.tflops[row["track"]] * 1e6), problem.bytes / (card.gbs * 1e3)
    )
    return {
        "case": row["case"],
        "dtype": row["dtype"],
        "track": row["track"],
        "ours_us": round(us["ours"], 3),
        "interval_us": timing.interval(samples["ours"]),
        "peers": {name: {"us": round(us[name], 3), "error": peer_errors[name]} for name in peers},
        "best_peer": best,
        "ratio": round(us[best] / us["ours"], 4),
        "tflops": round(problem.flops / us["ours"] / 1e6, 1),
        "gbs": round(problem.bytes / us["ours"] / 1e3, 1),
        "roofline_fraction": floor and round(floor / us["ours"], 4),
        "error": error,
        "workspace_bytes": sum(t.numel() * t.element_size() for t in loaded.workspaces.values()),
        "prepare_us": 0,
        "candidates": row.get("candidates", 0),
        "search_seconds": row.get("search_seconds", 0),
        "schedule": row.get("schedule", ""),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plans", type=pathlib.Path, required=True)
    parser.add_argument(
        "--out", type=pathlib.Path, help="default: the card's folder of bench/results"
    )
    parser.add_argument("--group")
    parser.add_argument("--case", action="append", help="and others, if given again")
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing a row")
    parser.add_argument(
        "--commit",
        help="of the tree that made the plans; default: WARPLOOM_COMMIT, or what git says here",
    )
    options = parser.parse_args()
    commit = options.commit or gpu.commit()
    options.out = options.out or gpu.results(torch.cuda.get_device_name(0))
    order = [row["case"] for row, _ in cases.CASES]
    rows = [json.loads(p.read_text()) for p in sorted(options.plans.glob("*.json"))]
    rows.sort(key=lambda row: order.index(row["case"]) if row["case"] in order else len(order))
    options.out.mkdir(parents=True, exist_ok=True)
    driver = gpu.query("driver_version")
    groups = {}
    for path in options.out.glob("*.json"):  # rows of other cases stay
        if "rows" in (stored := json.loads(path.read_text())):
            groups[path.stem] = {
                row.get("case"): {"commit": stored.get("commit") or "unknown", **row}
                for row in stored["rows"]
            }
    measured = failed = 0
    for row in rows:
        if (options.group and row["group"] != options.group) or (
            options.case and row["case"] not in options.case
        ):
            continue
        try:
            result = measure(row, options.seconds) | {"commit": commit}
        except Exception as problem:  # one bad plan must not lose the others' figures
            print(f"{row['case']}: {type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr)
            failed += 1
            continue
        measured += 1
        groups.setdefault(row["group"], {})[result["case"]] = result
        print(
            f"{result['case']:<34} {result['track']:<5} {result['ours_us']:>9.1f} us  "
            f"{result['tflops']:>6.1f} TF {result['gbs']:>7.1f} GB/s "
            f"{result['ratio']:.3f}x {result['best_peer']:<14} error {result['error']:.2e} "
            f"(peer {result['peers'][result['best_peer']]['error']:.2e})  "
            f"{row.get('schedule', '')}",
            flush=True,
        )
        torch.cuda.empty_cache()
        # After every row: who is stopped keeps what there is, the rows not measured again among it.
        ordered = sorted(
            groups[row["group"]].values(),
            key=lambda one: order.index(one["case"]) if one["case"] in order else len(order),
        )
        record = {
            "device": torch.cuda.get_device_name(0),
            "driver": driver,
            "cuda": torch.version.cuda,
            "peers": {"torch": torch.__version__, "cublas": f"of CUDA {torch.version.cuda}"},
            "clocks": gpu.query(gpu.CLOCKS),
            "commit": commit,
            "command": "python3 " + " ".join(sys.argv),
            "rows": ordered,
        }
        part = options.out / f"{row['group']}.json.part"
        part.write_text(json.dumps(record, indent=1) + "\n")
        part.rename(options.out / f"{row['group']}.json")
    print(f"{measured} rows measured, {failed} plans failed")
    return 1 if failed or not measured else 0


if __name__ == "__main__":
    sys.exit(main())
