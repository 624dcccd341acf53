"""The committed audits of published lists are what the commands of docs/owod.md give today."""

import json
from pathlib import Path

import pytest

from tests.docs.audit_pages import FOLDER, LISTS, write
from tests.real_files import real_files


@real_files("owod_audits")
def check_the_committed_pages_are_what_an_audit_gives(shared: Path, tmp_path: Path) -> None:
    for path in [path for name in LISTS for path in write(name, shared / "data", tmp_path)]:
        assert path.read_text(encoding="utf-8") == (FOLDER / path.name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LISTS)
def test_no_page_takes_a_lower_bound_for_too_few(name: str) -> None:
    # 413 ids of ORE's t2_ft are in no source: nothing that is seen proves that a class has fewer than 50 images.
    statements = json.loads((FOLDER / f"{name}.json").read_text())["statements"]
    parts = [(one["gravity"], part["about"]) for one in statements if one["rule"] == "TI5" for part in one["parts"]]
    assert [gravity for gravity, about in parts if about.endswith("exemplars")] == ["undecidable"] * 3
    assert "known classes have fewer" not in (FOLDER / f"{name}.html").read_text(encoding="utf-8")
