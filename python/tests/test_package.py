"""The wheel: what it holds, and that it installs and runs by itself."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

from support import SCRATCH, warploom

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = SCRATCH / "wheel"


def has(module):
    """Whether Debian's package of it is installed."""
    command = [sys.executable, "-c", f"import {module}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def made():
    """The wheel, made once."""
    if not WHEEL.exists():
        builder = ROOT / "tools" / "build_wheel.py"
        command = [sys.executable, str(builder), str(ROOT), warploom.program(), str(WHEEL)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    return next(WHEEL.glob("*.whl"))


@unittest.skipUnless(all(map(has, ("pip", "setuptools", "wheel"))), "pip and wheel make wheels")
class WheelTest(unittest.TestCase):
    def test_holds_files_where_the_sources_have_links(self):
        with zipfile.ZipFile(made()) as wheel:
            text = wheel.read("warploom/exporting.py").decode()
            names = set(wheel.namelist())
        own = (ROOT / "python" / "warploom" / "exporting.py").read_text(encoding="utf-8")
        self.assertEqual(text, own)
        for file in (ROOT / "python" / "warploom").glob("*.py"):
            self.assertIn(f"warploom/{file.name}", names)
        self.assertFalse(any("tests" in name for name in names))

    def test_names_the_backend_for_torch_2(self):
        with zipfile.ZipFile(made()) as wheel:
            name = next(one for one in wheel.namelist() if one.endswith("entry_points.txt"))
            text = wheel.read(name).decode()
        self.assertIn("[torch_dynamo_backends]\nwarploom = warploom.backend:backend", text)

    def test_is_for_this_platform_alone(self):
        self.assertRegex(made().name, r"-py3-none-linux_\w+\.whl$")

    def test_installs_without_a_network_and_finds_its_own_program(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
            command += ["--target", folder, str(made())]
            subprocess.run(command, check=True, capture_output=True)
            env = {**os.environ, "PYTHONPATH": folder}
            env.pop("WARPLOOM_PROGRAM", None)
            script = "import warploom; print(warploom.__version__, warploom.program())"
            ran = subprocess.run(
                [sys.executable, "-c", script],
                capture_output=True,
                text=True,
                check=True,
                env=env,
                cwd=folder,
            )
            version, path = ran.stdout.split()
            self.assertEqual(pathlib.Path(path), pathlib.Path(folder) / "warploom/bin/warploom")
            command = [str(pathlib.Path(folder) / "bin" / "warploom"), "--version"]
            ran = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
            self.assertEqual(ran.stdout.strip(), version)


class ProgramTest(unittest.TestCase):
    """Where the program is looked for."""

    def found(self, **env):
        script = "import warploom.program as p; print(p.program())"
        left = {k: v for k, v in os.environ.items() if k != "WARPLOOM_PROGRAM"}
        return subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=False,
            env={**left, "PYTHONPATH": str(ROOT / "python"), **env},
        )

    def test_the_wheels_own_command_needs_no_torch(self):
        project = (ROOT / "python" / "pyproject.toml").read_text(encoding="utf-8")
        module = re.search(r'^warploom = "([\w.]+):main"', project, re.M).group(1)
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_text("#!/bin/sh\necho it answers\n")
            program.chmod(0o755)
            (pathlib.Path(folder) / "torch.py").write_text("raise SystemExit('torch is imported')")
            ran = subprocess.run(
                [sys.executable, "-c", f"import {module} as command; command.main()"],
                capture_output=True,
                text=True,
                check=False,
                env={
                    **os.environ,
                    "WARPLOOM_PROGRAM": str(program),
                    "PYTHONPATH": f"{folder}:{ROOT / 'python'}",
                },
            )
        self.assertEqual((ran.stdout, ran.stderr), ("it answers\n", ""))

    def test_the_wheel_asks_for_a_python_that_has_what_it_uses(self):
        project = (ROOT / "python" / "pyproject.toml").read_text(encoding="utf-8")
        self.assertIn('requires-python = ">=3.10"', project)  # entry_points(group=…)

    def test_the_wheels_own_command_is_not_taken_for_it(self):
        with tempfile.TemporaryDirectory() as folder:
            command = pathlib.Path(folder) / "warploom"
            command.write_text("#!/bin/sh\nexit 0\n")
            command.chmod(0o755)
            ran = self.found(PATH=f"{folder}:{os.environ['PATH']}")
            self.assertNotEqual(ran.stdout.strip(), str(command))

    def test_the_version_is_the_programs(self):
        ran = subprocess.run(
            [warploom.program(), "--version"], capture_output=True, text=True, check=True
        )
        self.assertEqual(ran.stdout.strip(), warploom.__version__)


class TypedTest(unittest.TestCase):
    """Type hints are part of the package."""

    def test_functions_that_users_call_have_hints_and_docstrings(self):
        for name in warploom.__all__:
            value = getattr(warploom, name)
            if not callable(value) or isinstance(value, type):
                continue
            self.assertTrue(value.__doc__, name)
            hints = set(value.__annotations__)
            self.assertIn("return", hints, name)
        self.assertTrue((ROOT / "python" / "warploom" / "py.typed").exists())

    def test_the_head_names_every_file(self):
        text = warploom.__doc__
        for name in re.findall(r"\w+\.py", text):
            self.assertTrue((ROOT / "python" / "warploom" / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
