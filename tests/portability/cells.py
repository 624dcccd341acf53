"""The cells of the matrix: what each sets, whether this machine can run it, and the environment it runs in."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import ROOT

EVERY_FEATURE = "every feature above the baseline"
"""Stands for the names that NumPy calls its features by, which differ from version to version."""
INTERPRETERS = "CURATION_PYTHONS"
"""Environment variable: interpreters to look for, names or paths, divided by blanks."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Cell:
    """One way to run.

    Attributes
    ----------
    name : str
    sets : mapping of str to str
        Environment variables.
    needs : tuple of str
        Features of the CPU, in NumPy's names.
    python : str
        Like ``3.12``; empty for the interpreter that runs the matrix.
    versions : {"locked", "floor", "newest"}
        Of the direct dependencies: constraints.txt, the lower bounds of pyproject.toml, or unpinned.
    """

    name: str
    sets: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    python: str = ""
    versions: str = "locked"


def _threads(n: int) -> dict[str, str]:
    return dict.fromkeys(_THREADS, str(n))


_AVX2, _AVX512 = ("AVX2", "FMA3"), ("AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL")
CELLS = (
    Cell("as it comes"),
    Cell("OpenBLAS Nehalem", {"OPENBLAS_CORETYPE": "Nehalem"}, ("SSE42",)),
    Cell("OpenBLAS Haswell", {"OPENBLAS_CORETYPE": "Haswell"}, _AVX2),
    Cell("OpenBLAS Zen", {"OPENBLAS_CORETYPE": "Zen"}, _AVX2),
    Cell("OpenBLAS SkylakeX", {"OPENBLAS_CORETYPE": "SkylakeX"}, _AVX512),
    Cell("torch default", {"ATEN_CPU_CAPABILITY": "default"}),
    Cell("torch AVX2", {"ATEN_CPU_CAPABILITY": "avx2"}, _AVX2),
    Cell("torch AVX-512", {"ATEN_CPU_CAPABILITY": "avx512"}, _AVX512),
    # What torch's linear algebra does on a processor that is not Intel's: it chooses by the maker.
    Cell("MKL compatible", {"MKL_CBWR": "COMPATIBLE"}),
    Cell("NumPy baseline", {"NPY_DISABLE_CPU_FEATURES": EVERY_FEATURE}),
    Cell("1 thread", _threads(1)),
    Cell("2 threads", _threads(2)),
    Cell("hash seed 1", {"PYTHONHASHSEED": "1"}),
    Cell(
        "an old machine",
        {
            "OPENBLAS_CORETYPE": "Nehalem",
            "ATEN_CPU_CAPABILITY": "default",
            "NPY_DISABLE_CPU_FEATURES": EVERY_FEATURE,
            "PYTHONHASHSEED": "2",
            **_threads(1),
        },
        ("SSE42",),
    ),
    Cell("Python 3.11, lower bounds", python="3.11", versions="floor"),
    Cell("Python 3.11, newest", python="3.11", versions="newest"),
    Cell("Python 3.12, newest", python="3.12", versions="newest"),
    Cell("Python 3.13, newest", python="3.13", versions="newest"),
)


class NotHereError(Exception):
    """This machine cannot run a cell; the message says why."""


def require(cell: Cell) -> None:
    """Raise `NotHereError` if the CPU lacks what the cell imitates: its kernels would be illegal instructions."""
    from numpy._core import _multiarray_umath as umath

    lacking = [one for one in cell.needs if not umath.__cpu_features__.get(one)]
    if lacking:
        raise NotHereError(f"the CPU has no {', '.join(lacking)}")


def interpreter(version: str) -> str:
    """Return an interpreter of Python ``version``, of those named in `INTERPRETERS` or on the path."""
    named = os.environ.get(INTERPRETERS, "").split()
    for one in [*named, f"python{version}", sys.executable]:
        path = shutil.which(one)
        if path and _version_of(path) == version:
            return path
    raise NotHereError(f"no python{version} on the path or in {INTERPRETERS}")


def _version_of(path: str) -> str:
    asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(asked, capture_output=True, text=True).stdout.strip()


def python_of(cell: Cell, folder: Path) -> str:
    """Return the interpreter of a cell; where it has versions of its own, in a virtual environment under ``folder``.

    Raises
    ------
    NotHereError
        No such interpreter, or no package index to install from.
    """
    if cell.versions == "locked":
        return sys.executable
    base = interpreter(cell.python)
    home = folder / f"{cell.versions}-{cell.python}"
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = floor_constraints() if cell.versions == "floor" else ""
    asked = "\n".join([*direct(), *tools(), wanted])
    stamp = home / "installed.txt"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == asked:
        return str(python)
    subprocess.run([base, "-m", "venv", "--clear", str(home)], check=True)
    (home / "constraints.txt").write_text(wanted, encoding="utf-8")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "-c", str(home / "constraints.txt"), *direct(), *tools()], capture_output=True, text=True
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NotHereError(f"its packages do not install: {(said or ['?'])[0][:200]}")
    stamp.write_text(asked, encoding="utf-8")
    return str(python)


def environment(cell: Cell, python: str) -> dict[str, str]:
    """Return the environment of a cell's processes; real annotation files are left out, so that all run the same."""
    set_by_cells = {name for one in CELLS for name in one.sets}
    kept = {name: value for name, value in os.environ.items() if name not in set_by_cells}
    kept.pop("CURATION_SHARED", None)
    sets = dict(cell.sets)
    if sets.get("NPY_DISABLE_CPU_FEATURES") == EVERY_FEATURE:
        sets["NPY_DISABLE_CPU_FEATURES"] = _dispatched(python)
    return kept | sets | {"PYTHONPATH": str(ROOT), "CURATION_SHARED": os.devnull}


def _dispatched(python: str) -> str:
    code = (
        "from numpy._core import _multiarray_umath as m; "
        "print(*(one for one in m.__cpu_dispatch__ if m.__cpu_features__[one]))"
    )
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


# Never torch: unpinned it is gigabytes of CUDA, and its pin in constraints.txt is a build of one Python.
EXTRAS = ("fast", "photos", "analysis", "publish")
_TEST_TOOLS = ("pytest", "hypothesis", "jsonschema", "rfc8785")
_BOUND = re.compile(r"([A-Za-z0-9._-]+)>=([0-9][0-9.]*)")


def direct() -> list[str]:
    """Return the direct dependencies of the core and `EXTRAS`, as pyproject.toml states them."""
    project = _project()
    optional = project["optional-dependencies"]
    stated = [*project["dependencies"], *(one for extra in EXTRAS for one in optional[extra])]
    return sorted(set(stated))


def tools() -> list[str]:
    """Return what the chosen tests need beside them."""
    return [
        one for one in _project()["optional-dependencies"]["dev"] if one.startswith(_TEST_TOOLS) and "xdist" not in one
    ]


def floors() -> dict[str, str]:
    """Return the lower bound of every direct dependency.

    Raises
    ------
    ValueError
        A dependency states something else than one lower bound.
    """
    found = {}
    for requirement in direct():
        match = _BOUND.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement}: not of the form name>=version")
        found[match[1]] = match[2]
    return found


def floor_constraints() -> str:
    """Return a constraints file that holds every direct dependency at its lower bound."""
    return "".join(f"{name}=={version}\n" for name, version in floors().items())


def kernels() -> dict[str, str]:
    """Return what the libraries really compute with here: the environment only asks for it."""
    from numpy._core import _multiarray_umath as umath
    from threadpoolctl import threadpool_info

    found = {"NumPy": " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]) or "baseline"}
    for library in threadpool_info():
        if library["internal_api"] == "openblas":
            found["OpenBLAS"] = f"{library['architecture']}, {library['num_threads']} threads"
    if importlib.util.find_spec("torch"):
        import torch

        found["torch"] = f"{torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"
    return found


def _project() -> dict[str, dict[str, list[str]]]:
    project: dict[str, dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    return project
