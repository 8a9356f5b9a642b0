#!/usr/bin/env python3
"""Walks the five problems of CRFM's "Surprisingly Fast AI-Generated Kernels" (Stanford, 28 May
2025) from a naive kernel on, one action by its name after another, each measured.

  walk.py WARPLOOM                    on the GPU at hand, CRFM's shapes
  walk.py WARPLOOM --target cpu       on this machine's cores, smaller shapes
  walk.py WARPLOOM --target sm_90a --dry
                                      what the actions make there; nothing is measured

What was measured lands in bench/results/CARD/crfm_walk.json after every problem, and its curves
in crfm_walk.svg beside it. Run again, the walk goes on where it stopped. The steps of each problem
and kind of target are files of this folder: conv2d_sm_90a.json, conv2d_cpu.json and so on.

No model is asked: the ideas are CRFM's, in our words, with the action of ours that is one; where
none is, `none` says why.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))
import gpu  # noqa: E402

# By name: as `warploom new` reads it, with CRFM's shape and a smaller one for a CPU.
PROBLEMS = {
    "conv2d": (
        "conv(x[{n},3,224,224], w[96,3,11,11], b[96], strides=4, pads=2)",
        {"n": 100},
        {"n": 2},
    ),
    "matmul": ("matmul(a[{n},{n}], b[{n},{n}])", {"n": 4096}, {"n": 512}),
    "softmax": ("softmax(x[{rows},{columns}])", {"rows": 4096, "columns": 65536},
                {"rows": 64, "columns": 16384}),
    "layernorm": (
        "layernorm(x[{n},{c},{h},{h}], g[{c},{h},{h}], b[{c},{h},{h}], axis=1)",
        {"n": 16, "c": 64, "h": 256},
        {"n": 4, "c": 16, "h": 64},
    ),
    "conv2d_relu_maxpool": (
        "maxpool(relu(conv(x[{n},3,224,224], w[96,3,11,11], b[96], strides=4, pads=2)), 3, "
        "strides=2)",
        {"n": 100},
        {"n": 2},
    ),
}


def kind_of(warploom, folder, target):
    """Which steps a target takes, told by its families of kernels: sm_89 takes sm_80's."""
    model = f"{folder}/probe.onnx"
    subprocess.run([warploom, "new", "matmul(a[512,512], b[512,512])", "--out", model],
                   check=True, stdout=subprocess.DEVNULL)
    line = [warploom, "show", model, "--what", "space", "--target", target, "--json"]
    said = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    families = [one["family"] for one in said["families"]]
    if "matmul_wgmma" in families:
        return "sm_90a"
    return "sm_80" if "matmul_mma" in families else "cpu"


def folder_for(warploom, kind):
    if kind != "cpu":
        return gpu.results()
    line = [warploom, "doctor", "--json"]
    doctor = json.loads(subprocess.run(line, capture_output=True, text=True).stdout)
    return gpu.RESULTS / gpu.folder_of(doctor["cpu"]["name"])


def walked(args, name, out):
    """A problem's walk, in a file of its own until all of it is there."""
    text, full, small = PROBLEMS[name]
    is_small = args.small or (args.kind == "cpu" and not args.full)
    sizes = small if is_small else full
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/{name}.onnx"
        subprocess.run([args.warploom, "new", text.format(**sizes), "--out", model], check=True,
                       stdout=subprocess.DEVNULL)
        line = [args.warploom, "walk", model, "--steps", str(HERE / f"{name}_{args.kind}.json"),
                "--target", args.target, "--json"]
        if args.track:
            line += ["--track", args.track]
        if args.dry:
            line.append("--dry")
        else:
            line += ["--out", str(out.with_suffix(f".{name}.part"))]
        ran = subprocess.run(line, stdout=subprocess.PIPE, text=True)
    said = json.loads(ran.stdout)
    if ran.returncode != 0:
        sys.exit(f"{name}: {json.dumps(said.get('error', said))}")
    for row in said["rows"]:
        row.pop("machine", None)
    return {"problem": name, "sizes": sizes, "is_small": is_small, "track": said["track"],
            "rows": said["rows"]}


def curve(walk, top):
    """One problem's curve as SVG, at this height: a step a round, the reference dashed."""
    rows = [row for row in walk["rows"] if row["us"]]
    if not rows:
        return ""
    times = [row["us"] for row in rows] + [r["reference_us"] for r in rows if r["reference_us"]]
    low, high = math.log10(min(times)) - 0.1, math.log10(max(times)) + 0.1
    last = max(1, max(row["round"] for row in rows))

    def x(number):
        return 90 + 680 * number / last

    def y(us):
        return top + 40 + 180 * (high - math.log10(us)) / (high - low)

    out = [f'<text x="90" y="{top + 24}" class="title">{walk["problem"]} '
           f'{"x".join(str(v) for v in walk["sizes"].values())}, {walk["track"]}</text>']
    corners = []
    for row in rows:
        if corners:
            corners.append((x(row["round"]), corners[-1][1]))
        corners.append((x(row["round"]), y(row["us"])))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    out.append(f'<polyline points="{points}" class="line"/>')
    reference = next((row["reference_us"] for row in rows if row["reference_us"]), None)
    if reference:
        out.append(f'<line x1="90" x2="770" y1="{y(reference):.1f}" y2="{y(reference):.1f}" '
                   'class="reference"/>')
    for row in rows:
        idea = row["idea"].replace("&", "&amp;").replace("<", "&lt;")
        took = "none" if row.get("none") else "dot"
        out.append(f'<circle cx="{x(row["round"]):.1f}" cy="{y(row["us"]):.1f}" r="4" '
                   f'class="{took}"><title>{row["round"]}: {idea}\n{row["us"]:.4g} us</title>'
                   "</circle>")
        out.append(f'<text x="{x(row["round"]):.1f}" y="{top + 240}" class="tick">'
                   f'{row["round"]}</text>')
    for us in (min(times), max(times)):
        out.append(f'<text x="84" y="{y(us) + 4:.1f}" class="axis">{us:.4g} us</text>')
    return "\n".join(out)


STYLE = """text { font: 12px sans-serif; fill: #444 } .title { font-weight: bold; fill: #111 }
.axis { text-anchor: end } .tick { text-anchor: middle }
.line { fill: none; stroke: #2a6fb0; stroke-width: 2 }
.reference { stroke: #b0502a; stroke-dasharray: 6 4 }
.dot { fill: #2a6fb0 } .none { fill: #fff; stroke: #2a6fb0 }"""


def picture(walks):
    parts = [curve(walk, 250 * i) for i, walk in enumerate(walks)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {250 * len(walks) + 10}">\n'
            f"<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("warploom")
    parser.add_argument("--target", default="auto")
    parser.add_argument("--track", help="fp32 by default; CRFM's own rule is nearer to tolerance")
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS))
    parser.add_argument("--small", action="store_true", help="the smaller shapes, on a GPU too")
    parser.add_argument("--full", action="store_true", help="CRFM's shapes, on a CPU too")
    parser.add_argument("--dry", action="store_true", help="measure nothing, write nothing")
    parser.add_argument("--out", type=pathlib.Path, help="default: see above")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.kind = kind_of(args.warploom, folder, args.target)
    out = args.out
    if not out and not args.dry:
        out = folder_for(args.warploom, args.kind) / "crfm_walk.json"
    names = args.problem or list(PROBLEMS)
    walks = []
    before = json.loads(out.read_text())["walks"] if out and out.exists() else []
    for name in names:
        walks.append(walked(args, name, out))
        if args.dry:
            continue
        kept = [one for one in before if one["problem"] not in [w["problem"] for w in walks]]
        everything = sorted(kept + walks, key=lambda one: list(PROBLEMS).index(one["problem"]))
        record = {"target": args.kind, "command": "examples/crfm/walk.py", "commit": gpu.commit(),
                  "walks": everything}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record, indent=1) + "\n")
        out.with_suffix(".svg").write_text(picture(everything))
    if args.dry:
        print(json.dumps(walks, indent=1))
    else:
        for name in names:
            out.with_suffix(f".{name}.part").unlink(missing_ok=True)
        print(out)


if __name__ == "__main__":
    main()
