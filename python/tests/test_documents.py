"""What README.md, docs/pytorch.md and the lesson say of torch runs as it stands there.

Searches get two seconds. tools/check_commands.py runs the documents' other commands.
"""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import unittest

from support import SCRATCH, TARGET, exporting, warploom

ROOT = pathlib.Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def within(folder):
    """A folder to run in."""
    folder.mkdir(parents=True, exist_ok=True)
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def blocks_of(document):
    """(language, text) of its blocks of Python, and of commands that need torch, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"^```(python|sh needs torch)\n(.*?)^```$", text, re.M | re.S)


def run_python(code, names):
    """Runs a block in the interpreter that the blocks of one document share."""
    short = f'"15s", "target": "{TARGET}", "candidates": 2'
    code = code.replace('"budget": "60s"', f'"budget": {short}')
    code = code.replace('"60s"', f'"15s", target="{TARGET}", candidates=2')
    with contextlib.redirect_stderr(io.StringIO()):
        exec(compile(code, "document", "exec"), names)


class DocumentsTest(unittest.TestCase):
    def run_commands(self, script):
        """Runs a block of commands in the folder that Python's blocks are in."""
        program = pathlib.Path(warploom.program()).resolve()
        interpreter = pathlib.Path(sys.executable)
        path = f"{program.parent}:{interpreter.parent}:{os.environ['PATH']}"
        script = script.replace("--budget 60s", f"--budget 15s --target {TARGET}")
        ran = subprocess.run(
            ["bash", "-ec", script],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
        )
        self.assertEqual(ran.returncode, 0, script + ran.stdout + ran.stderr)

    def test_docs_pytorch_runs_from_top_to_bottom(self):
        blocks = blocks_of("docs/pytorch.md")
        self.assertGreaterEqual(len(blocks), 5)
        names = {}
        with within(SCRATCH / "document"):
            for language, text in blocks:
                # What torch.onnx.export writes, and what reads that: torch's newer exporter needs
                # packages that are not everywhere.
                of_export = "torch.onnx.export" in text or language != "python"
                if of_export and exporting.has_dynamo():
                    continue
                if language == "python":
                    run_python(text, names)
                else:
                    self.run_commands(text)

    def test_the_readme_begins_as_docs_pytorch(self):
        self.assertIn(blocks_of("docs/pytorch.md")[0], blocks_of("README.md"))

    def test_the_bundle_of_the_readme_runs(self):
        block = next(text for _, text in blocks_of("README.md") if "import run" in text)
        model = ROOT / "examples" / "conv_relu_maxpool.textproto"
        folder = SCRATCH / "readme"
        names = {}
        with within(folder):
            self.run_commands(f"warploom optimize {model} --target cpu --budget 15s --quiet")
            sys.path.insert(0, str(folder / "out" / "conv_relu_maxpool"))
            try:
                run_python(block, names)
            finally:
                sys.path.pop(0)
        wanted = names["torch"].nn.functional.conv2d(
            names["x"], names["w"], names["b"], padding=1
        )
        wanted = names["torch"].nn.functional.max_pool2d(wanted.relu(), 2)
        self.assertTrue(names["torch"].allclose(names["y"], wanted, atol=1e-3))

    def test_the_lesson_runs(self):
        source = (ROOT / "examples" / "pytorch" / "five_lines.py").read_text(encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        env["WARPLOOM_PROGRAM"] = warploom.program()
        with within(SCRATCH / "lesson"):
            ran = subprocess.run(
                [sys.executable, "-c", source.replace('"10s"', '"20s"')],
                capture_output=True,
                text=True,
                check=False,
                env=env,
            )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("with other weights", ran.stdout)

    def test_the_long_lesson_runs(self):
        names = {"__name__": "lesson"}
        source = (ROOT / "examples" / "pytorch" / "lesson.py").read_text(encoding="utf-8")
        with within(SCRATCH / "long_lesson"), contextlib.redirect_stdout(io.StringIO()) as said:
            run_python(source, names)
        self.assertIn("with torch stays histc", said.getvalue())


if __name__ == "__main__":
    unittest.main()
