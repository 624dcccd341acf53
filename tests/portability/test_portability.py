"""The matrix of `make portability`: its program agrees with itself, its cells and constraints with pyproject.toml."""

import json
import subprocess
import sys
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.docs.pages import ROOT, text_of
from tests.portability.__main__ import BEGIN, END, TESTS, Run, main, table
from tests.portability.cells import (
    CELLS,
    EVERY_FEATURE,
    Cell,
    NotHereError,
    environment,
    interpreter,
    require,
)
from tests.portability.comparison import compare, difference
from tests.portability.requirements import EXTRAS, direct, floor_constraints, floors
from tests.rounding import cosine_error

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def program(cell: Cell, *worlds: str) -> list[dict[str, Any]]:
    given = [sys.executable, "-m", "tests.portability.program", *worlds]
    env = environment(cell, sys.executable)
    done = subprocess.run(given, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    outputs: list[dict[str, Any]] = json.loads(done.stdout)["outputs"]
    return outputs


def test_an_old_machine_and_another_hash_seed_give_the_same_digests_and_numbers() -> None:
    worlds = ("osod3", "ood", "kinship", "docs/decisions.md")
    old = next(one for one in CELLS if one.name == "an old machine")
    try:
        require(old)
    except NotHereError:
        old = Cell("another seed and one thread", {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "1"})
    found = compare(program(CELLS[0], *worlds), program(old, *worlds))
    assert found.wrong == ()
    assert found.passed
    assert found.total > 20


def output(name: str, kind: str, text: str, *numbers: float) -> dict[str, Any]:
    return {"name": name, "kind": kind, "sha256": f"{text}{numbers}", "skeleton": text, "numbers": numbers}


@pytest.mark.parametrize(
    ("one", "other", "passed"),
    [
        (output("a", "identity", "t", 1.0), output("a", "identity", "t", 1.0), True),
        (output("a", "identity", "t", 1.0), output("a", "identity", "t", 1.0 + 2**-52), False),
        (output("a", "double", "t", 1.0), output("a", "double", "t", 1.0 + 2**-52), True),
        (output("a", "double", "t", 1.0), output("a", "double", "t", 1.0 + 1e-11), False),
        (output("a", "double", "t", 1e-9), output("a", "double", "t", 1.1e-9), False),
        (output("a", "double", "t", 1.0), output("a", "double", "s", 1.0), False),
        (output("a", "single", "t", 1e-8), output("a", "single", "t", 1e-7), True),
        (output("a", "single", "t", 0.5), output("a", "single", "t", 0.5 + 2 * cosine_error(352)), False),
        (output("a", "double", "t", 1.0), output("b", "double", "t", 1.0), False),
    ],
)
def test_what_counts_as_equal(one: dict[str, Any], other: dict[str, Any], passed: bool) -> None:
    assert compare([one], [other]).passed == passed
    assert compare([other], [one]).passed == passed


def test_nan_equals_nan_and_nothing_else() -> None:
    assert difference(float("nan"), float("nan")) == 0
    assert not difference(float("nan"), 1.0) <= 1


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


def test_what_a_cell_sets_reaches_its_processes_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_the_tests_of_the_matrix_are_here_and_the_page_has_every_cell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert all((ROOT / one).is_file() for one in TESTS)
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [one.name for one in CELLS]
    written = text_of("docs/portability.md").partition(BEGIN)[2].partition(END)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in written.splitlines() if line.startswith("| ")]
    assert rows[1 : len(CELLS) + 1] == [one.name for one in CELLS]
