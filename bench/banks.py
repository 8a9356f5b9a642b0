"""Wavefronts of shared-memory accesses: the emulator's count beside the GPU's own, and kernels of
the tile language under a sanitizer.

    python3 bench/banks.py lists --warploom build/release/warploom --out lists.json [FILE.tile ..]
        # on any machine: emulates
    python3 bench/banks.py measure lists.json --out bench/results/h200/banks.json
        # on the GPU, with ncu
    compute-sanitizer --tool memcheck python3 bench/banks.py run lists.json
        # likewise racecheck, synccheck, initcheck
"""
import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
METRICS = {
    "all": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "loads": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "stores": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}


def lists(options):
    files = options.files or [
        p
        for d in ("examples/tile", "tests/cli/tile", "tests/kernels/tile")
        for p in sorted((REPOSITORY / d).glob("*.tile"))
    ]
    rows = []
    for path in map(pathlib.Path, files):
        run = subprocess.run(
            [options.warploom, "compile", str(path), "--target", "sm_90a", "--check", "--json"],
            capture_output=True,
            text=True,
        )
        result = json.loads(run.stdout)
        if "verdict" not in result:
            print(f"{path.name}: {result.get('error', {}).get('code')}", file=sys.stderr)
            continue
        text = result["launch_list"]["kernels"][0]["source"].split("\n")
        kinds = {
            "loads": ("ld_shared", "ldmatrix"),
            "stores": ("st_shared", "stmatrix"),
            "copies": ("cp_async",),
        }
        emulated = {
            kind: sum(
                use["wavefronts"]
                for use in result["verdict"].get("banks", [])
                if any(word in text[use["line"] - 1] for word in words)
            )
            for kind, words in kinds.items()
        }
        rows.append(
            {
                "program": path.stem,
                "emulated": emulated,
                "least": result["verdict"]["wavefronts_least"],
                "list": result["launch_list"],
            }
        )
    options.out.write_text(json.dumps(rows) + "\n")
    print(f"{len(rows)} programs")


def run(options):
    import torch

    import launch

    for row in json.loads(options.lists.read_text()):
        buffers = {}
        zeroed = {
            arg["buffer"]
            for kernel in row["list"]["kernels"]
            for arg in kernel["args"]
            if arg.get("zeroed")
        }
        for kind in ("inputs", "outputs"):
            for spec in row["list"][kind]:
                count = 1
                for extent in spec["shape"]:
                    count *= extent
                dtype = launch.TORCH_TYPES.get(spec["dtype"])
                if kind == "outputs":
                    size = count * (dtype.itemsize if dtype else 1)
                    made = torch.full(
                        (size,),
                        0 if spec["name"] in zeroed else 255,
                        device="cuda",
                        dtype=torch.uint8,
                    )
                elif dtype is not None and dtype.is_floating_point:
                    made = torch.randn(count, device="cuda").to(dtype)
                else:
                    made = torch.randint(0, 8, (count,), device="cuda", dtype=dtype or torch.uint8)
                buffers[spec["name"]] = made
        for arg in (arg for kernel in row["list"]["kernels"] for arg in kernel["args"]):
            arg.pop("packed", None)  # bits at random are as random in any order
        loaded = launch.Loaded(row["list"])
        loaded.launch(loaded.bind(buffers))
        torch.cuda.synchronize()
        print(row["program"], flush=True)


def measure(options):
    rows = json.loads(options.lists.read_text())
    names = "|".join(sorted({kernel["name"] for row in rows for kernel in row["list"]["kernels"]}))
    command = [
        "ncu",
        "--csv",
        "--kernel-name",
        f"regex:^({names})$",
        "--metrics",
        ",".join(METRICS.values()),
        sys.executable,
        __file__,
        "run",
        str(options.lists),
    ]
    text = subprocess.run(command, capture_output=True, text=True).stdout
    launches = {}
    for line in csv.DictReader(io.StringIO(text[text.index('"ID"') :])):
        launches.setdefault(int(line["ID"]), {})[line["Metric Name"]] = float(
            line["Metric Value"].replace(",", "")
        )
    measured = [launches[i] for i in sorted(launches)]
    out = []
    for row in rows:
        of = [measured.pop(0) for _ in row["list"]["kernels"] if measured]
        counts = {name: sum(one[metric] for one in of) for name, metric in METRICS.items()}
        out.append(
            {
                "program": row["program"],
                "emulated": row["emulated"],
                "least": row["least"],
                "measured": counts,
            }
        )
        print(f"{row['program']:<24} emulated {row['emulated']}  measured {counts}")
    options.out.write_text(
        json.dumps(
            {"command": "python3 " + " ".join(sys.argv), "metrics": METRICS, "rows": out}, indent=1
        )
        + "\n"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("lists")
    verb.add_argument("files", nargs="*")
    verb.add_argument("--warploom", required=True)
    verb.add_argument("--out", type=pathlib.Path, required=True)
    verb = verbs.add_parser("run")
    verb.add_argument("lists", type=pathlib.Path)
    verb = verbs.add_parser("measure")
    verb.add_argument("lists", type=pathlib.Path)
    verb.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    {"lists": lists, "run": run, "measure": measure}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
