import csv
from pathlib import Path
from unittest import mock

import pytest
from matplotlib.figure import Figure

from curation.evaluation.figures import impact_figure, unknown_figure
from curation.evaluation.measures import Measured
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


def panel_width(section: Measured, folder: Path) -> float:
    """Return the width of the panels in inches."""
    found: list[Figure] = []

    def keep(figure: Figure, stream: object, **options: object) -> None:
        figure.draw_without_rendering()
        found.append(figure)

    with mock.patch.object(Figure, "savefig", keep):
        impact_figure({"t1": section}, "clean", folder / "impact")
    [width] = {round(axis.get_position().width * found[0].get_figwidth(), 3) for axis in found[0].axes}
    return float(width)


def test_the_panels_are_as_wide_however_many_classes_do_not_reach_the_recall(tmp_path: Path) -> None:
    section = measured(example()[0])["clean"]
    widths = set()
    for number in (0, 1, 3, 79):
        names = ", ".join(f"a rather long name of a class {k}" for k in range(number))
        impact = section.tables["impact"] | {
            "classes": [80] * 100, "classes_reaching": [80 - number] * 100, "never_reached_by": [names] * 100,
        }  # fmt: skip
        (folder := tmp_path / str(number)).mkdir()
        widths.add(panel_width(section._replace(tables={**section.tables, "impact": impact}), folder))
    assert len(widths) == 1
