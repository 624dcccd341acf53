"""One test a set of real files: all its checks are run, and every failure is told."""

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real_files import CHECKS, PROVIDERS, SETS, checks_of

TESTS = Path(__file__).resolve().parent


def modules() -> list[str]:
    """Return the modules that hold checks."""
    return sorted(
        ".".join(("tests", *path.relative_to(TESTS).with_suffix("").parts))
        for path in TESTS.rglob("test_*.py")
        if "\n@real_files(" in path.read_text(encoding="utf-8")
    )


@pytest.fixture(scope="session", autouse=True)
def _registered() -> None:
    for name in modules():
        importlib.import_module(name)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_real_files(
    name: str,
    shared: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: dict[tuple[str, str], object] = {}
    failures, lacking = [], []
    for place, check in enumerate(checks_of(name)):
        folder = tmp_path / str(place)
        folder.mkdir()

        def argument(wanted: str, module: str, folder: Path = folder) -> object:
            if wanted == "tmp_path":
                return folder
            if (module, wanted) not in PROVIDERS:
                return request.getfixturevalue(wanted)
            if (module, wanted) not in made:
                provider = PROVIDERS[module, wanted]
                made[module, wanted] = provider(**{one: argument(one, module) for one in taken(provider)})
            return made[module, wanted]

        module = check.function.__module__
        try:
            given = {one: argument(one, module) for one in taken(check.function) if one not in check.case}
            check.function(**given, **check.case)
        except pytest.skip.Exception as reason:
            lacking.append(f"{check.name}: {reason}")
        except Exception as error:
            error.add_note(f"in {check.name}")
            failures.append(error)
        # What one check hides or changes is there again for the next.
        monkeypatch.undo()
        capsys.readouterr()
    if failures:
        raise ExceptionGroup(f"{len(failures)} checks of {name}: {SETS[name]}", failures)
    if lacking:
        pytest.skip(f"all but {len(lacking)} checks passed; {'; '.join(lacking)}")


def test_every_set_has_checks_and_every_check_is_in_a_set() -> None:
    assert all(CHECKS.values())
    for module in modules():
        loaded = vars(importlib.import_module(module))
        written = {one for one in loaded if one.startswith("check_") and loaded[one].__module__ == module}
        # A check that is not registered would never be run.
        assert written == {one.__name__ for listed in CHECKS.values() for one in listed if one.__module__ == module}


def test_few_tests_need_real_files(request: pytest.FixtureRequest) -> None:
    """Who has none sees few skips: a check of real files is one of a set, and what it states is stated without them."""
    needing = [one.nodeid for one in request.session.items if "shared" in getattr(one, "fixturenames", ())]
    assert len(needing) <= 20, needing


def taken(function: Callable[..., object]) -> list[str]:
    return list(inspect.signature(function).parameters)
