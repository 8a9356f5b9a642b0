"""Compiles the sources of a bundle into a shared library, once for each content and machine.

The library lies in the bundle's own folder build/, or, where that cannot be written, in
$XDG_CACHE_HOME/warploom/bundles (~/.cache/warploom/bundles). Its name holds a hash of every source,
of the command and of the processor, so that a changed file, another compiler or another machine
that shares the folder gets a library of its own. Processes that call for the first time at once
wait for one of them.
"""
import ctypes
import fcntl
import hashlib
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile


class BuildError(RuntimeError):
    """The sources could not be compiled; the text says what is missing."""


def cpp_compiler():
    """The command of a C++20 compiler: $CXX, or the first that is installed."""
    named = shlex.split(os.environ.get("CXX", ""))
    for command in [named] if named else [["g++"], ["clang++"], ["c++"]]:
        if shutil.which(command[0]):
            return command
    raise BuildError(
        "no C++ compiler was found, which the first call of a bundle needs: install g++ 10 or "
        "later, or set CXX to the path of one"
    )


def cuda_compiler():
    """The command of nvcc: $NVCC, or one of CUDA_HOME, PATH, /usr/local/cuda or pip's packages."""
    named = shlex.split(os.environ.get("NVCC", ""))
    if named and shutil.which(named[0]):
        return named
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [pathlib.Path(home) / "bin" / "nvcc" for home in homes if home]
    on_path = shutil.which("nvcc")
    places += [pathlib.Path(on_path)] if on_path else []
    places.append(pathlib.Path("/usr/local/cuda/bin/nvcc"))
    packages = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    places += sorted(packages.glob("*/bin/nvcc"))
    for place in places:
        if os.access(place, os.X_OK):
            return [str(place)]
    raise BuildError(
        "nvcc was not found, which the first call of a bundle for a GPU needs: install the CUDA "
        "toolkit, or set CUDA_HOME to its folder or NVCC to the path of nvcc"
    )


def processor():
    """What tells this processor from others: -march=native compiles for it alone."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine() + platform.processor()
    telling = ("model name", "flags", "Features", "CPU part")
    return "".join(sorted({line for line in lines if line.startswith(telling)}))


def key_of(folder, command, files):
    """A hash of all that the library depends on."""
    digest = hashlib.sha256()
    compiler = pathlib.Path(shutil.which(command[0])).resolve()
    status = compiler.stat()
    for part in (*command, processor(), str(compiler), str(status.st_size), str(status.st_mtime)):
        digest.update(part.encode() + b"\0")
    for file in sorted(files):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def cache_folders(folder):
    """Where libraries may lie, the best place first."""
    yield folder / "build"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    yield pathlib.Path(cache) / "warploom" / "bundles"


def compiled(command, sources, target):
    """Compiles into a file beside `target`, which then takes its name: none is half written."""
    handle, made = tempfile.mkstemp(dir=target.parent, prefix=target.stem, suffix=".tmp")
    os.close(handle)
    try:
        ran = subprocess.run(
            [*command, "-o", made, *map(str, sources)], capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            said = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-30:])
            raise BuildError(f"{shlex.join(command[:1])} could not compile the bundle:\n{said}")
        os.chmod(made, 0o755)
        os.replace(made, target)
    finally:
        if os.path.exists(made):
            os.remove(made)


def library(folder, name, sources, includes, command):
    """The shared library of `sources`, loaded; compiled first where no call before has done it."""
    sources = [folder / source for source in sources]
    headers = [header for place in includes for header in (folder / place).rglob("*.h*")]
    files = [*sources, *folder.glob("*.h"), *headers]
    file = f"{name}-{key_of(folder, command, files)}.so"
    refused = []
    for place in cache_folders(folder):
        target = place / file
        if target.is_file():
            return ctypes.CDLL(str(target))
        try:
            place.mkdir(parents=True, exist_ok=True)
            lock = open(place / f".{file}.lock", "w", encoding="utf-8")
        except OSError as error:
            refused.append(f"{place} ({error.strerror})")
            continue
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.is_file():
                compiled(command, sources, target)
            return ctypes.CDLL(str(target))
    raise BuildError(
        "no folder can be written to hold the compiled bundle: " + ", ".join(refused) + "; set "
        "XDG_CACHE_HOME to one that can"
    )
