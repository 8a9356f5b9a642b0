import pathlib
import subprocess
import tempfile


def load(name, sources, is_python_module, extra_include_paths, extra_cflags, extra_cuda_cflags):
    built = pathlib.Path(tempfile.mkdtemp()) / f"{name}.so"
    subprocess.run(
        [
            "c++",
            "-shared",
            "-fPIC",
            *extra_cflags,
            *(f"-I{path}" for path in extra_include_paths),
            *sources,
            "-o",
            str(built),
        ],
        check=True,
    )
    return str(built)
