"""``curation review summary`` as a user runs it: what is told of files, and what ``--strict`` does not let pass."""

import json
from pathlib import Path

import pytest

from curation.cli import main
from curation.decisions.files import read_decisions
from tests.real_files import real_files

HEAD = "image_id,dataset,stage,action,reason,reviewer,date\n"


def table(path: Path, *rows: str) -> str:
    path.write_text(HEAD + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def test_counts_agreement_and_conflicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    anna = table(
        tmp_path / "anna.csv",
        "1,coco,manual,remove,cat,anna,2025-03-01",
        "1,coco,manual,keep,,anna,2025-03-02",
        "2,coco,manual,remove,cat,anna,2025-03-01",
        "3,coco,manual,unsure,,anna,2025-03-01",
    )
    ben = table(tmp_path / "ben.csv", "1,coco,manual,keep,,ben,", "2,coco,manual,to_far,,ben,")
    assert main(["review", "summary", anna, ben, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    resolution = data["resolution"]
    assert (resolution["superseded"], resolution["abstained"], len(resolution["conflicts"])) == (1, 1, 1)
    assert resolution["conflicts"][0]["votes"] == {"remove": ["anna"], "to_far": ["ben"]}
    (pair,) = data["agreement"][0]["pairs"]
    assert (pair["images"], pair["same"]) == (2, 1)
    # Of two images one agrees; chance: keep .5 × .5.
    assert pair["kappa"]["value"] == pytest.approx((0.5 - 0.25) / 0.75)
    assert main(["review", "summary", anna, ben]) == 0
    assert "0.333" in capsys.readouterr().out
    assert main(["review", "summary", anna, ben, "--strict"]) == 1
    assert main(["review", "summary", anna, ben, "--strict", "--rule", "senior", "--senior", "anna"]) == 0
    assert main(["review", "summary", anna, ben, "--strict", "--on-error", "conflicts=keep"]) == 0


def test_resolved_decisions_are_written_and_resolve_to_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["1,coco,manual,remove,,anna,", "1,coco,manual,keep,,ben,", "1,coco,manual,keep,,cleo,"]
    given = table(tmp_path / "d.csv", *rows)
    out = tmp_path / "resolved.jsonl"
    assert main(["review", "summary", given, "--out", str(out)]) == 2
    assert not out.exists()
    assert main(["review", "summary", given, "--rule", "majority", "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr().out
    digest = json.loads(captured)["resolution"]["digest"]
    assert [one.reviewer for one in read_decisions(out).decisions] == ["ben", "cleo"]
    assert main(["review", "summary", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["resolution"]["digest"] == digest
    assert main(["review", "summary", given, "--rule", "majority", "--out", given]) == 2


def test_bad_files_give_one_clear_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = table(tmp_path / "d.csv", "1,coco,manual,explode,,anna,")
    assert main(["review", "summary", bad]) == 2
    assert "d.csv, line 2" in capsys.readouterr().err
    assert main(["review", "summary", str(tmp_path / "none.csv")]) == 2
    good = table(tmp_path / "good.csv", "1,coco,manual,keep,,anna,")
    assert main(["review", "summary", good, good]) == 2
    assert main(["review", "summary", good, "--manifest", str(tmp_path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_empty_file_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "summary", table(tmp_path / "d.csv"), "--strict"]) == 0
    assert "0 decisions stand" in capsys.readouterr().out


@real_files("decisions")
def check_the_authors_file_with_its_defects(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared / "data/findmeifyoucan"
    command = ["review", "summary", str(folder / "manual_selection.json")]
    assert main([*command, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert sum(len(one["repeated"]) for one in data["lists"]) == 36
    assert len(data["problems"]) == 1
    assert "00166893b16a03ab" in data["problems"][0]
    assert main([*command, "--strict"]) == 1
    told = capsys.readouterr().out
    for piece in ("00166893b16a03ab", "24 (coco:", "10 (openimages:", "2 (coco:000000285388"):
        assert piece in told
