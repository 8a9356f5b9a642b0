"""What docs/pytorch.md and the lesson say runs as it stands there, searches in two seconds."""
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


class DocumentsTest(unittest.TestCase):
    def test_blocks_of_python_in_docs_pytorch_run_in_order(self):
        text = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        self.assertGreaterEqual(len(blocks), 3)
        names = {}
        with within(SCRATCH / "document"):
            for block in blocks:
                code = block.replace('"60s"', f'"2s", target="{TARGET}"')
                if "torch.onnx.export" in code and exporting.has_dynamo():
                    continue  # the newer exporter's packages are not everywhere
                with contextlib.redirect_stderr(io.StringIO()):
                    exec(compile(code, "docs/pytorch.md", "exec"), names)

    def test_the_lesson_runs(self):
        source = (ROOT / "examples" / "pytorch" / "five_lines.py").read_text(encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        env["WARPLOOM_PROGRAM"] = warploom.program()
        with within(SCRATCH / "lesson"):
            ran = subprocess.run(
                [sys.executable, "-c", source.replace('"10s"', '"2s"')],
                capture_output=True,
                text=True,
                check=False,
                env=env,
            )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("with other weights", ran.stdout)


if __name__ == "__main__":
    unittest.main()
