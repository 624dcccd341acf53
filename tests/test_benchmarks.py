"""What benchmarks import is there."""

import importlib
import re
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    # Works import inside of functions, which no test calls; the type checker does not read them.
    imports = re.findall(
        r"^ *from (curation\.[\w.]+) import ([\w, ]+)$", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    for module, names in imports:
        found = importlib.import_module(module)
        for name in names.split(","):
            assert hasattr(found, name.split()[0]), f"{module} has no {name}"
