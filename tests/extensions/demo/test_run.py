"""The whole demo on a few images, as a stranger runs it."""

import json
from pathlib import Path

import pytest

from curation.cli import main as curation_main
from curation.core.errors import UsageError
from curation.extensions.demo.__main__ import run_demo


@pytest.mark.slow
def test_the_demo_shows_what_it_computed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    run_demo(out, sizes=(40, 25, 70))
    text = capsys.readouterr().out
    figure = out / "scores" / "wilderness-curve.png"
    assert f"Figure: {figure}" in text
    assert figure.read_bytes().startswith(b"\x89PNG")
    for name in ("bold", "cautious"):
        result = json.loads((out / "scores" / name / "results.json").read_text())
        assert result["manifest"]["name"] == "elephant/drawn-world"
        (value,) = (row["value"] for row in result["measures"] if row["measure"] == "mAP11")
        assert any(name in line and f"{value:.2f}" in line for line in text.splitlines())
        assert value > 30
        assert "Average wilderness impact" in (out / f"{name}.txt").read_text()
    assert curation_main(["verify", str(out / "manifest")]) == 0


def test_a_folder_that_holds_anything_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="not empty"):
        run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
