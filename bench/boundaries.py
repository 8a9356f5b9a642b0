#!/usr/bin/env python3
"""What the search of boundaries between regions is worth, on this machine's CPU.

    bench/boundaries.py [--budget 20s] [--case PATTERN] [--seeds 1,2] [--seconds 4] [--list]

Each network is searched twice with the same budget and seed, cold, without an archive and with an
empty cache: once with fusion's own regions (`--boundaries fused`), once with whatever the search
makes of them. The two bundles are then called by turns from one process, and a row's `ratio` is the
median of their times' ratios, fused over searched: above 1 the search of boundaries gained. A ratio
counts where its 95 % interval is no wider than 5 % of it, or lies on one side of 1; a row says
whether it does.

Both searches have all of the time that is given, so that what the trials of other partitions cost
the rest of the search is in the ratio. Rows go to bench/results/<cpu>/boundaries.json; those of
other cases and seeds stay. Networks are expressions of `warploom new`.
"""

import argparse
import ctypes
import fnmatch
import json
import math
import mmap
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDEST = 0.05
PAIRS = 41
ALIGNMENT = 4096

# What `warploom new` is told, by name.
NETWORKS = {
    "mlp_softmax": (
        "h = gelu(linear(x[512,512], w1[1024,512], b1[1024])); "
        "softmax(linear(h, w2[512,1024], b2[512]))"
    ),
    "mlp_residual_norm": (
        "h = gelu(linear(x[256,512], w1[2048,512], b1[2048])); "
        "layernorm(linear(h, w2[512,2048], b2[512]) + x, g[512], b[512])"
    ),
    "gated_mlp": (
        "swiglu(rmsnorm(x[256,512], g[512]), gate[1408,512], up[1408,512], down[512,1408]) + x"
    ),
    "head_softmax": "softmax(linear(x[512,1024], w[512,1024], b[512]))",
    "attention_block": "attention(x[8,256,64], k[8,256,64], v[8,256,64]) + x",
    "residual_block": (
        "h = relu(conv(x[4,64,28,28], w1[64,64,3,3], b1[64], pads=1)); "
        "relu(conv(h, w2[64,64,3,3], b2[64], pads=1) + x)"
    ),
    "smooth_pool_conv": (
        "conv(avgpool(gelu(x[8,32,56,56]), 3, strides=1, pads=1), w[64,32,1,1], b[64])"
    ),
    "squeeze_excite": (
        "h = relu(conv(x[4,64,28,28], w[128,64,1,1], b[128])); "
        "s = sigmoid(conv(relu(conv(global_avgpool(h), w1[32,128,1,1], b1[32])), "
        "w2[128,32,1,1], b2[128])); h * s"
    ),
}


def run(*command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def folder_name():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*:\s*(.+)", text).group(1).strip()
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"), name


def searched(program, model, way, options, seed, folder):
    """What a cold search says; its bundle lies in FOLDER/WAY."""
    place = pathlib.Path(folder, way)
    command = [program, "optimize", model, "--target", "cpu", "--budget", options.budget]
    command += ["--json", "--no-resume", "--archive", f"{folder}/{way}.sqlite"]
    command += ["--out", place, "--seed", seed]
    if way == "fused":
        command += ["--boundaries", "fused"]
    cold = os.environ | {"XDG_CACHE_HOME": f"{folder}/{way}.cache"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=cold, check=False
    )
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        found = {"error": {"code": f"status {done.returncode}", "message": done.stderr[-300:]}}
    shutil.rmtree(f"{folder}/{way}.cache", ignore_errors=True)
    return found


class Calls:
    """A bundle's launcher with its tensors, to be called again and again."""

    def __init__(self, folder):
        plan = json.loads((folder / "plan.json").read_text())
        name = plan["name"]
        library = self.built(folder, name)
        self.memory = []
        launches = plan["launch_list"]
        addresses = []
        for number, tensor in enumerate(launches["inputs"]):
            addresses.append(self.tensor(folder, plan, tensor, number))
        for tensor in launches["outputs"]:
            addresses.append(self.allocated(self.bytes_of(tensor)))
        self.array = (ctypes.c_void_p * len(addresses))(*addresses)
        size = getattr(library, f"{name}_workspace_bytes")
        size.restype = ctypes.c_size_t
        self.work = ctypes.c_void_p(self.allocated(size()))
        self.launch = getattr(library, f"{name}_run_array")
        prepare = getattr(library, f"{name}_prepare_array", None)
        if launches.get("prepare"):
            assert prepare(self.array, self.work) == 0

    def built(self, folder, name):
        """The shared library of the bundle's own sources, with its Makefile's flags."""
        flags = re.search(r'flags="(.*)"', (folder / f"{name}.py").read_text())[1].split()
        target = folder / "build" / f"{name}.so"
        target.parent.mkdir(exist_ok=True)
        sources = [folder / f"{name}_kernels.cpp", folder / f"{name}_host.cpp"]
        includes = [f"-I{folder}/device/cpu", f"-I{folder}/device/common"]
        run("g++", "-shared", "-fPIC", *flags, *includes, "-o", target, *sources)
        return ctypes.CDLL(str(target))

    def bytes_of(self, tensor):
        width = int(re.search(r"\d+", tensor["dtype"]).group())
        return math.prod(tensor["shape"]) * width // 8

    def allocated(self, size):
        """Zeros on pages of their own."""
        pages = mmap.mmap(-1, max(size, 1) + ALIGNMENT)
        self.memory.append(pages)
        return ctypes.addressof(ctypes.c_char.from_buffer(pages))

    def tensor(self, folder, plan, tensor, number):
        """What the check feeds it with; numbers that are no fp32 denormals else."""
        size = self.bytes_of(tensor)
        address = self.allocated(size)
        stored = plan["constants"].get(tensor["name"]) or f"check/input_{number}.bin"
        file = folder / stored
        data = file.read_bytes() if file.exists() else b"\x00\x00\x80\x3e" * (size // 4)
        ctypes.memmove(address, data, min(size, len(data)))
        return address

    def sample(self, calls):
        """Mean microseconds of so many calls."""
        start = time.perf_counter()
        for _ in range(calls):
            self.launch(self.array, self.work)
        return (time.perf_counter() - start) / calls * 1e6


def is_undecided(ratio, low, high):
    return high - low > WIDEST * ratio


def interval_of(values):
    """The median, and between which order statistics it lies with 95 %."""
    ordered = sorted(values)
    count = len(ordered)
    reach = 0.98 * math.sqrt(count)
    low = max(0, math.floor(count / 2 - reach))
    high = min(count - 1, math.ceil(count / 2 + reach) - 1)
    return statistics.median(ordered), ordered[low], ordered[high]


def by_turns(first, second, seconds):
    """Samples of both, in turns."""
    for calls in (first, second):
        calls.sample(2)
    longest = max(first.sample(3), second.sample(3))
    count = max(1, round(seconds * 1e6 / (2 * PAIRS) / longest))
    pairs = []
    for turn in range(PAIRS):
        order = (first, second) if turn % 2 == 0 else (second, first)
        times = {one: one.sample(count) for one in order}
        pairs.append((times[first], times[second]))
    return pairs


def boundaries_of(found, folder):
    """The changes of a plan's boundaries, as text, and how many were tried."""
    plan = json.loads((folder / "plan.json").read_text())
    known = plan.get("boundaries") or {}
    changes = known.get("changes") or []
    text = "; ".join(f"{one['kind']} {' + '.join(one['tensors'])}" for one in changes)
    return text, known.get("tried", 0)


def timed_rows(program, name, model, options, seed, commit):
    """A row: both searches, and their bundles by turns."""
    row = {"case": name, "seed": seed, "budget": options.budget, "commit": commit, "cold": True}
    with tempfile.TemporaryDirectory(prefix="boundaries.") as folder:
        ways = {}
        for way in ("fused", "searched"):
            found = searched(program, model, way, options, seed, folder)
            if "best_us" not in found:
                return row | {"failed": f"{way}: {found.get('error')}"}
            ways[way] = found
        places = {way: pathlib.Path(folder, way) for way in ways}
        calls = {way: Calls(place) for way, place in places.items()}
        pairs = by_turns(calls["fused"], calls["searched"], options.seconds)
        ratio, low, high = interval_of([one / other for one, other in pairs])
        text, tried = boundaries_of(ways["searched"], places["searched"])
        for number, way in enumerate(("fused", "searched")):
            us, least, most = interval_of([pair[number] for pair in pairs])
            row[way] = {
                "us": round(us, 3),
                "interval_us": [round(least, 3), round(most, 3)],
                "candidates": ways[way].get("candidates"),
                "regions": len(ways[way].get("regions", [])) or 1,
            }
    return row | {
        "ratio": round(ratio, 4),
        "interval": [round(low, 4), round(high, 4)],
        "pairs": len(pairs),
        "undecided": is_undecided(ratio, low, high),
        "changes": text,
        "tried": tried,
    }


def write(path, rows, device, commit, options):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = sorted(rows, key=lambda row: (row["case"], row["seed"]))
    command = f"bench/boundaries.py --budget {options.budget} --seconds {options.seconds:g}"
    result = {"device": device, "commit": commit, "command": command, "rows": rows}
    path.write_text(json.dumps(result, indent=1) + "\n")


def line_of(row):
    name = f"{row['case']:20} seed {row['seed']}"
    if "failed" in row:
        return f"{name} failed: {row['failed']}"
    low, high = row["interval"]
    word = "  UNDECIDED" if row["undecided"] else ""
    return (
        f"{name} {row['fused']['us']:10.1f} us fused, {row['searched']['us']:10.1f} us searched, "
        f"{row['ratio']:.3f} ({low:.3f} to {high:.3f}){word}, {row['tried']} tried: "
        f"{row['changes'] or 'as fused'}"
    )


def options_of():
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--budget", default="20s", help="of a search")
    flags.add_argument("--case", default="*", help="a pattern of names")
    flags.add_argument("--seeds", default="1", help="a row for each")
    flags.add_argument("--seconds", type=float, default=4, help="of the turns, about")
    flags.add_argument("--list", action="store_true", help="the networks, and nothing is measured")
    flags.add_argument("--out", help="another file")
    flags.add_argument("--program", default=str(ROOT / "build/release/warploom"))
    return flags.parse_args()


def results_of(folder, device):
    """The file of a machine: where one of the same name has another number of cores, its own."""
    for path in sorted((ROOT / "bench/results").glob(f"{folder}*/cpu.json")):
        if json.loads(path.read_text())["device"] == device:
            return path.with_name("boundaries.json")
    return ROOT / "bench/results" / folder / "boundaries.json"


def main():
    options = options_of()
    cases = {name: text for name, text in NETWORKS.items() if fnmatch.fnmatch(name, options.case)}
    if options.list:
        for name, text in cases.items():
            print(f"{name:20} {text}")
        return
    folder, device = folder_name()
    device = f"{device}, {len(os.sched_getaffinity(0))} cores"
    path = pathlib.Path(options.out or results_of(folder, device))
    commit = run("git", "rev-parse", "HEAD", cwd=ROOT).strip()
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    with tempfile.TemporaryDirectory(prefix="networks.") as models:
        for name, text in cases.items():
            model = f"{models}/{name}.onnx"
            run(options.program, "new", text, "--out", model)
            for seed in map(int, options.seeds.split(",")):
                row = timed_rows(options.program, name, model, options, seed, commit)
                same = lambda one: (one["case"], one["seed"]) == (name, seed)
                rows = [one for one in rows if not same(one)] + [row]
                print(line_of(row), flush=True)
                write(path, rows, device, commit, options)


if __name__ == "__main__":
    main()
