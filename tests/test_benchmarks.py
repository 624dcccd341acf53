"""What benchmarks say of memory is of the part that is measured, and not of the process that started it."""

import importlib
import re
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    # Parts run in processes of their own as scripts in texts: neither the linter nor the type checker reads those.
    imports = re.findall(
        r"^ *from (curation\.[\w.]+) import ([\w, ]+)$", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    for module, names in imports:
        found = importlib.import_module(module)
        for name in names.split(","):
            assert hasattr(found, name.split()[0]), f"{module} has no {name}"
