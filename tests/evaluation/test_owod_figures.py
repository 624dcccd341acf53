import csv
import re
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from curation.core.errors import EvaluationError
from curation.evaluation.open_world_figures import impact_figure, unknown_figure
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


@pytest.mark.parametrize(
    ("n_tasks", "n_classes", "name"), [(1, 1, "a"), (1, 77, "class {}"), (5, 77, "{} " + "long " * 12)]
)
def test_panels_keep_their_width_when_many_classes_are_unreached(
    n_tasks: int, n_classes: int, name: str, tmp_path: Path
) -> None:
    section = measured(example()[0])["clean"]
    impact = {key: list(values) for key, values in section.tables["impact"].items()}
    impact["never_reached_by"][79] = ", ".join(name.format(number) for number in range(n_classes))
    impact["classes"][79], impact["classes_reaching"][79] = n_classes + 2, 2
    section = section._replace(tables={**section.tables, "impact": impact})
    png, svg, _ = impact_figure({f"t{number}": section for number in range(n_tasks)}, "clean", tmp_path / "impact")
    ink = (plt.imread(png)[:, :, :3] < 0.7).any(axis=2)
    # The axis below a panel is the longest dark line of the picture.
    runs = [max(map(len, "".join(map(str, row)).split("0"))) for row in ink.astype(int)]
    assert max(runs) > 0.75 * ink.shape[1]
    shown = re.findall(r"<!-- (t0: .*?) -->", svg.read_text(encoding="utf-8"))
    assert shown
    assert f"{n_classes} of {n_classes + 2} classes do not reach" in shown[0]


def test_the_unknown_figure_ends_at_the_operating_point(tmp_path: Path) -> None:
    section = measured(example()[0])["clean"]
    first = unknown_figure({"t1": section, "a $name": section}, "clean", tmp_path / "unknown")
    last = [row for row in read(first[-1]) if row["task"] == "t1"][-1]
    assert [float(last[name]) for name in ("UR", "UDP", "P_unknown")] == [50.0, 60.0, 50.0]


def test_detections_may_be_none(tmp_path: Path) -> None:
    section = measured(replace(example()[0], guesses=()))["clean"]
    assert len(impact_figure({"t1": section}, "clean", tmp_path / "impact")) == 3
    assert len(unknown_figure({"t1": section}, "clean", tmp_path / "unknown")) == 3


def test_a_figure_without_unknown_objects_is_refused(tmp_path: Path) -> None:
    case = example()[0]
    section = measured(replace(case, objects=case.objects[:1]))["clean"]
    with pytest.raises(EvaluationError, match="unknown objects"):
        impact_figure({"t1": section}, "clean", tmp_path / "impact")
    with pytest.raises(EvaluationError):
        unknown_figure({}, "clean", tmp_path / "unknown")
