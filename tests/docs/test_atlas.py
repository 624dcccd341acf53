import re
from pathlib import Path

import pytest

from curation.cli import main
from tests.docs.atlas import PAGE, findings, page
from tests.real_files import real_files


def test_the_page_says_what_is_declared() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m tests.docs.atlas --write"


def test_every_finding_says_what_it_does_not_show_and_how_to_see_it() -> None:
    rows = findings()
    assert len(rows) > 80
    for row in rows:
        assert all(row[:2])
        assert all(row[3:7])
        assert "|" not in "".join(row[:7])
        assert row.command.startswith("curation ")


FOLDERS = {
    "imagenet/": "openood/imagenet", "Aquatic/": "rwd/Aquatic", "Medical/": "rwd/Medical",
    "imagenet_ssb_splits.json": "ssb",
}  # fmt: skip
SHOWN = re.compile(r"\(PL[5678]\)$|related by WordNet")


@real_files("atlas_lists")
def check_numbers_of_the_table_are_those_of_its_commands(
    shared: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: dict[str, str] = {}
    held = 0
    for row in findings():
        command, target, *options = row.command.split()[1:]
        if command == "hierarchy":
            target, *options = "related", *row.command.split()[3:]
        folder = FOLDERS.get(options[0] if command == "hierarchy" else target)
        if folder is None or not SHOWN.search(row.measured) or "pair" in row.found:
            continue
        if row.command not in shown:
            monkeypatch.chdir(shared / "data/atlas" / folder)
            assert main([command, "." if command == "audit" else target, *options]) in (0, 1)
            shown[row.command] = capsys.readouterr().out
        numbers = re.findall(r"\b\d[\d,.]*\d\b", row.found)
        assert [number for number in numbers if number not in shown[row.command]] == [], row
        held += len(numbers)
    assert held >= 40, held
