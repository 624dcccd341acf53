"""What a cell installs: the direct dependencies at their lower bounds, or as new as they come; never torch.

An unpinned torch is gigabytes of CUDA, and its pin in constraints.txt is a build of one Python. Cells without torch
test what the core and the extras of `EXTRAS` compute.
"""

import re
import tomllib

from tests.docs.pages import ROOT

EXTRAS = ("fast", "photos", "analysis", "publish")
TEST_TOOLS = ("pytest", "hypothesis", "jsonschema", "rfc8785")
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
        one for one in _project()["optional-dependencies"]["dev"] if one.startswith(TEST_TOOLS) and "xdist" not in one
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


def _project() -> dict[str, dict[str, list[str]]]:
    project: dict[str, dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    return project
