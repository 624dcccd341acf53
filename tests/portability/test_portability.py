"""The matrix of `make portability`: its cells and constraints agree with pyproject.toml and the page."""

import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.docs.pages import ROOT, text_of
from tests.portability.__main__ import BEGIN, END, TESTS, Run, main, table
from tests.portability.cells import (
    CELLS,
    EVERY_FEATURE,
    EXTRAS,
    Cell,
    NotHereError,
    direct,
    environment,
    floor_constraints,
    floors,
    interpreter,
    require,
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_floor_is_the_lowest_version_that_pyproject_allows() -> None:
    stated = [Requirement(one) for one in (*PROJECT["dependencies"], *(
        one for extra in EXTRAS for one in PROJECT["optional-dependencies"][extra]
    ))]  # fmt: skip
    assert {one.name for one in stated} == set(floors())
    lines = [Requirement(line) for line in floor_constraints().splitlines()]
    for requirement in stated:
        (pinned,) = (one for one in lines if one.name == requirement.name)
        (lower,), (exact,) = requirement.specifier, pinned.specifier
        assert (lower.operator, exact.operator, exact.version) == (">=", "==", lower.version)
    assert not any("torch" in one for one in direct())


def test_every_python_that_pyproject_names_has_a_cell() -> None:
    prefix = "Programming Language :: Python :: "
    named = {one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)}
    assert {one.python for one in CELLS if one.versions == "newest"} == named
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert [one.python for one in CELLS if one.versions == "floor"] == [lowest]


def test_what_a_cell_sets_reaches_its_processes_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    monkeypatch.setenv("CURATION_SHARED", "/real")
    assert "OPENBLAS_CORETYPE" not in environment(CELLS[0], sys.executable)
    cell = Cell("x", {"NPY_DISABLE_CPU_FEATURES": EVERY_FEATURE, "PYTHONHASHSEED": "7"})
    given = environment(cell, sys.executable)
    assert given["PYTHONHASHSEED"] == "7"
    assert given["CURATION_SHARED"] != "/real"
    code = "import numpy._core._multiarray_umath as m; print(any(m.__cpu_features__[o] for o in m.__cpu_dispatch__))"
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_this_machine_lacks_is_not_run_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotHereError, match="SVE1024"):
        require(Cell("x", needs=("SVE1024",)))
    with pytest.raises(NotHereError, match=r"python2\.4"):
        interpreter("2.4")
    row = table([Run(Cell("x", python="3.12", versions="newest"), absent="no python3.12")])
    assert "not run: no python3.12" in row


def test_the_tests_of_the_matrix_are_here_and_the_page_has_every_cell(capsys: pytest.CaptureFixture[str]) -> None:
    assert all((ROOT / one).exists() for one in TESTS)
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [one.name for one in CELLS]
    written = text_of("docs/portability.md").partition(BEGIN)[2].partition(END)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in written.splitlines() if line.startswith("| ")]
    assert rows[1 : len(CELLS) + 1] == [one.name for one in CELLS]
