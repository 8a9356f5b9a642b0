"""bench/kernelbench_modules.py: a row a task, under both rules, and none twice."""
import doctest
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest

from support import SCRATCH, torch, warploom

ROOT = pathlib.Path(__file__).resolve().parents[2]
HARNESS = ROOT / "bench" / "kernelbench_modules.py"
TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {computes}
def get_inputs(): return [torch.rand(8, 32)]
def get_init_inputs(): return []
"""


def harness():
    """The harness as a module."""
    spec = importlib.util.spec_from_file_location("harness", HARNESS)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


class RulesTest(unittest.TestCase):
    """A kernel that knows the task's inputs passes one rule, and not the other."""

    def test_the_examples_in_its_text_hold(self):
        self.assertEqual(doctest.testmod(harness()).failed, 0)

    def judged(self, model, kernel):
        task = harness().Task.__new__(harness().Task)
        task.model, task.device = model, "cpu"
        task.source = type("source", (), {"get_inputs": staticmethod(lambda: [torch.rand(4, 9)])})
        with torch.no_grad():
            return harness().judged(task, kernel, 4.8e-7)

    def test_what_is_right_is_right_under_both(self):
        row = self.judged(torch.nn.ReLU(), torch.relu)
        self.assertTrue(row["right"])
        self.assertGreater(row["impact"], 0.1)

    def test_what_is_right_on_positive_numbers_alone_is_wrong(self):
        row = self.judged(torch.nn.ReLU(), lambda x: x.clone())
        self.assertTrue(row["upstream"])
        self.assertFalse(row["repaired"]["signs"])
        self.assertFalse(row["right"])

    def test_a_task_whose_output_does_not_depend_on_its_input_is_not_sound(self):
        class Constant(torch.nn.Module):
            def forward(self, x):
                return torch.softmax(x.sum(1, keepdim=True), 1)

        row = self.judged(Constant(), Constant())
        self.assertEqual(row["impact"], 0)


class BoardTest(unittest.TestCase):
    def test_makes_a_row_of_each_task_and_none_twice(self):
        folder = SCRATCH / "tasks" / "level9"
        folder.mkdir(parents=True)
        (folder / "1_Relu.py").write_text(TASK.format(computes="torch.relu(x)"))
        (folder / "2_Draw.py").write_text(TASK.format(computes="torch.bernoulli(x)"))
        out = SCRATCH / "rows.jsonl"
        command = [sys.executable, str(HARNESS), str(folder.parent), "--out", str(out)]
        command += ["--budget", "3s", "--target", "cpu", "--no-compile"]
        env = {**os.environ, "WARPLOOM_PROGRAM": warploom.program()}
        for _ in range(2):
            said = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        self.assertIn("2 tasks, 1 right under both rules", said.stdout, said.stderr)
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([row["task"] for row in rows], ["level9_1_Relu", "level9_2_Draw"])
        self.assertTrue(rows[0]["right"] and rows[0]["ours_us"] > 0, rows[0])
        self.assertEqual(rows[1]["code"], "onnx-unknown-operator")


if __name__ == "__main__":
    unittest.main()
