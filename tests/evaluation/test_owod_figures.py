import csv
from pathlib import Path

import pytest

from curation.evaluation.figures import impact_figure, unknown_figure
from tests.evaluation.owod_cases import example, measured


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("profile", ["clean", "ore"])
def test_the_table_beside_the_impact_figure_holds_its_points(tmp_path: Path, profile: str) -> None:
    section = measured(example()[0])[profile]
    paths = impact_figure({"t1": section}, profile, tmp_path / "impact")
    assert [path.suffix for path in paths] == [".png", ".svg", ".csv"]
    rows = read(paths[-1])
    assert len(rows) == 100
    at = next(row for row in rows if row["recall"] == "0.80")
    assert float(at["WI"]) == section.value("WI")
    assert int(at["classes_reaching"]) == 2 - len(section.tables["impact"]["never_reached_by"][79].split(", "))


def test_the_unknown_figure_ends_at_the_operating_point(tmp_path: Path) -> None:
    section = measured(example()[0])["clean"]
    first = unknown_figure({"t1": section, "a $name": section}, "clean", tmp_path / "unknown")
    last = [row for row in read(first[-1]) if row["task"] == "t1"][-1]
    assert [float(last[name]) for name in ("UR", "UDP", "P_unknown")] == [50.0, 60.0, 50.0]
