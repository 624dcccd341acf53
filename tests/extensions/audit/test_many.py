"""Many folders audited at once say what each says alone, on either engine."""

import json
from pathlib import Path

import pytest

from curation.cli import main
from curation.core.errors import MissingFileError, UsageError
from curation.extensions.audit.many import audits
from curation.extensions.audit.run import audit


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Three sound and two leaky benchmarks, and one whose list cannot be read."""
    for number in range(5):
        folder = tmp_path / "all" / f"b{number}"
        folder.mkdir(parents=True)
        ids = [f"{one:012d}" for one in range(40)]
        (folder / "train.txt").write_text("\n".join(ids[:20]) + "\n")
        (folder / "test.txt").write_text("\n".join(ids[18 if number > 2 else 20 :]) + "\n")
    (tmp_path / "all" / "b5").mkdir()
    (tmp_path / "all" / "b5" / "test.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "all" / "empty").mkdir()
    return tmp_path / "all"


def test_each_folder_has_the_report_that_it_has_alone(folders: Path, tmp_path: Path) -> None:
    found = audits(folders, out=tmp_path / "out")
    rows = {row["folder"]: row for table in found.shards.tables() for row in table.to_pylist()}
    assert list(found.verdicts) == list(rows) == [f"b{number}" for number in range(6)]
    for number in range(5):
        alone = audit(folders / f"b{number}")
        assert json.loads(rows[f"b{number}"]["report"]) == json.loads(json.dumps(alone.data()))
        assert found.verdicts[f"b{number}"] == ("fail" if alone.failed else "pass")
    assert found.verdicts["b5"] == "error"
    assert str(tmp_path) not in rows["b5"]["error"]
    assert audits(folders, out=tmp_path / "again", workers=1).shards.digest == found.shards.digest
    assert found.failed


def test_the_command_and_its_errors(folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(folders), "--each", "--out", str(tmp_path / "o"), "--workers", "1"]) == 1
    assert "6 folders" in capsys.readouterr().out
    with pytest.raises(UsageError, match="No folder of lists"):
        audits(folders / "empty", out=tmp_path / "x")
    with pytest.raises(MissingFileError):
        audits(tmp_path / "none", out=tmp_path / "x")


def test_a_folder_in_which_nothing_was_compared_is_no_pass(folders: Path, tmp_path: Path) -> None:
    only = tmp_path / "only"
    for name in ("sound", "one_role"):
        (only / name).mkdir(parents=True)
        (only / name / "train.txt").write_text("a.jpg\nb.jpg\n")
        (only / name / ("test.txt" if name == "sound" else "other.txt")).write_text("c.jpg\n")
    found = audits(only, out=tmp_path / "o", workers=1)
    assert found.verdicts == {"one_role": "nothing compared", "sound": "pass"}
    assert (found.failed, found.exit_status) == (True, 2)
    assert audits(folders, out=tmp_path / "p", workers=1).exit_status == 1
