#!/usr/bin/env python3
"""Bundles by KernelBench's own rule: its eval_kernel_against_ref on adopt(Model) of each bundle's
module.

    warploom optimize level1_40_LayerNorm.onnx --out out/level1_40_LayerNorm
        # a task's model, its weights as inputs
    bench/modelnew.py CHECKOUT RESULT.json out/level1_40_LayerNorm …
        # CHECKOUT: a clone of KernelBench

A bundle's folder is named levelN_TASK after KernelBench/levelN/TASK.py. Five trials of random
inputs and weights; times are KernelBench's (CUDA events, in microseconds). Both in strict fp32."""
import json
import pathlib
import sys
import tempfile

import torch

import gpu


def main():
    checkout, result = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(checkout / "src"))
    from kernelbench.eval import eval_kernel_against_ref

    torch.set_grad_enabled(False)  # adopted modules compute no gradients, and say so
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows = []
    for bundle in map(pathlib.Path, sys.argv[3:]):
        level, task = bundle.name.split("_", 1)
        source = (checkout / "KernelBench" / level / f"{task}.py").read_text()
        module = (
            f"import sys\nsys.path.insert(0, {str(bundle.resolve())!r})\nfrom {bundle.name} "
            "import adopt\n"
            "ModelNew = adopt(Model)\n"
        )
        found = eval_kernel_against_ref(
            source,
            module,
            num_correct_trials=5,
            num_perf_trials=30,
            measure_performance=True,
            build_dir=tempfile.mkdtemp(prefix="modelnew."),
            device=torch.device("cuda:0"),
        )
        rows.append(
            {
                "task": bundle.name,
                "compiled": found.compiled,
                "correct": found.correctness,
                "trials": found.metadata.get("correctness_trials"),
                "us": 1e3 * found.runtime,
                "eager_us": 1e3 * found.ref_runtime,
            }
        )
        print(rows[-1], flush=True)
        torch.cuda.empty_cache()
    result.write_text(
        json.dumps(
            {
                "commit": gpu.commit(),
                "device": torch.cuda.get_device_name(0),
                "torch": torch.__version__,
                "rows": rows,
            },
            indent=1,
        )
        + "\n"
    )
    return 0 if all(row["correct"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
