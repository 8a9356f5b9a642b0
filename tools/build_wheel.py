#!/usr/bin/env python3
"""Makes the wheel of the Python package, with the program in it. Usage:

    build_wheel.py ROOT PROGRAM FOLDER     FOLDER/warploom-VERSION-py3-none-PLATFORM.whl

Nothing is downloaded: Debian's python3-pip, python3-setuptools and python3-wheel do. The sources
are laid out in a folder of their own, since links of python/warploom become files, and the program
belongs beside them. PLATFORM is this machine's, whose C library the program needs.
"""
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

LEFT_OUT = shutil.ignore_patterns("tests", "__pycache__", "build", "*.egg-info")


def laid_out(root, program, folder):
    """The sources of a wheel in `folder`."""
    shutil.copytree(root / "python", folder, ignore=LEFT_OUT)  # what links lead to, not links
    shutil.copy2(root / "LICENSE", folder)
    (folder / "warploom" / "bin").mkdir()
    shutil.copy2(program, folder / "warploom" / "bin" / "warploom")
    (folder / "warploom" / "bin" / "warploom").chmod(0o755)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    setup = f"[bdist_wheel]\nplat_name = {platform}\n"
    (folder / "setup.cfg").write_text(setup, encoding="utf-8")


def main():
    root, program, target = map(pathlib.Path, sys.argv[1:4])
    with tempfile.TemporaryDirectory(prefix="warploom-wheel-") as scratch:
        folder = pathlib.Path(scratch) / "package"
        laid_out(root, program, folder)
        target.mkdir(parents=True, exist_ok=True)
        for old in target.glob("warploom-*.whl"):
            old.unlink()
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--wheel-dir", str(target), str(folder)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(ran.stdout + ran.stderr)
    print(next(target.glob("warploom-*.whl")))


if __name__ == "__main__":
    main()
