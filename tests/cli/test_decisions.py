"""``curation review summary`` as a user runs it: what is told of files, and what ``--strict`` does not let pass."""

import json
from pathlib import Path

from curation.cli import main
from curation.review.decisions.files import read_decisions
from tests.real_files import real_files
from tests.shell import Shell

HEAD = "image_id,dataset,stage,action,reason,reviewer,date\n"


def table(path: Path, *rows: str) -> str:
    path.write_text(HEAD + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def test_resolved_decisions_are_written_and_resolve_to_themselves(tmp_path: Path, shell: Shell) -> None:
    rows = ["1,coco,manual,remove,,anna,", "1,coco,manual,keep,,ben,", "1,coco,manual,keep,,cleo,"]
    given = table(tmp_path / "d.csv", *rows)
    out = tmp_path / "resolved.jsonl"
    assert main(["review", "summary", given, "--out", str(out)]) == 2
    assert not out.exists()
    captured = shell.out("review", "summary", given, "--rule", "majority", "--out", out, "--json")
    digest = json.loads(captured)["resolution"]["digest"]
    assert [one.reviewer for one in read_decisions(out).decisions] == ["ben", "cleo"]
    assert shell.data("review", "summary", out, "--json")["resolution"]["digest"] == digest
    assert main(["review", "summary", given, "--rule", "majority", "--out", given]) == 2


def test_bad_files_give_one_clear_message(tmp_path: Path, shell: Shell) -> None:
    bad = table(tmp_path / "d.csv", "1,coco,manual,explode,,anna,")
    assert "d.csv, row 2" in shell.err("review", "summary", bad)
    assert main(["review", "summary", str(tmp_path / "none.csv")]) == 2
    good = table(tmp_path / "good.csv", "1,coco,manual,keep,,anna,")
    assert main(["review", "summary", good, good]) == 2
    shell.err("review", "summary", good, "--manifest", tmp_path)


def test_an_empty_file_says_nothing(tmp_path: Path, shell: Shell) -> None:
    assert "0 decisions count" in shell.out("review", "summary", table(tmp_path / "d.csv"), "--strict")


@real_files("decisions")
def check_the_authors_file_with_its_defects(shared: Path, shell: Shell) -> None:
    folder = shared / "data/findmeifyoucan"
    command = ["review", "summary", str(folder / "manual_selection.json")]
    data = shell.data(*command, "--json")
    assert sum(len(one["repeated"]) for one in data["lists"]) == 36
    assert len(data["problems"]) == 1
    assert "00166893b16a03ab" in data["problems"][0]
    told = shell.out(*command, "--strict", status=1)
    for piece in ("00166893b16a03ab", "24 (coco:", "10 (openimages:", "2 (coco:000000285388"):
        assert piece in told
