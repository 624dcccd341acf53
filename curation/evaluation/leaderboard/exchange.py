"""A leaderboard in the forms of others: Markdown, CSV, LaTeX, Every Eval Ever, ``.eval_results`` of a model's page.

Sources: the schema ``eval.schema.json`` 0.3.0 of evaleval/every_eval_ever; ``eval_results.yaml`` of
huggingface/hub-docs. Neither has room for an undefined number: such a number is left out, and never a zero.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from curation.canonical import sha256_of_bytes
from curation.csv_table import as_csv
from curation.errors import UsageError
from curation.evaluation.leaderboard.board import Group, Leaderboard, RankedRow
from curation.evaluation.leaderboard.rows import Metric, Row, measures_of
from curation.evaluation.measures import measure_of
from curation.pages import plain
from curation.storage import write_text
from curation.text_table import latex_table, printable

EEE_VERSION = "0.3.0"
_UNITS = {"share": "proportion", "%": "percent", "ratio": "ratio", "count": "count", "score": "score"}
_BOUNDS: dict[str, tuple[float | str, float | str]] = {
    "share": (0, 1),
    "%": (0, 100),
    "ratio": (0, "Infinity"),
    "count": (0, "Infinity"),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who measured which model, for records that leave this machine.

    Parameters
    ----------
    repo
        for eee and hub: the dataset on the hub that holds the manifest, ORG/NAME
    model
        for eee: NAME=ORG/MODEL gives a method of the table its name on the hub (repeatable)
    organisation
        for eee: who evaluated
    relationship
        for eee: of those who evaluated to those who made the model
    deployment
        for eee: where the model ran
    availability
        for eee: whether its weights are open
    date
        for eee and hub: when it was evaluated, YYYY-MM-DD, in UTC (eee needs it)
    """

    repo: Annotated[str, "ORG/NAME"] = ""
    model: Annotated[Mapping[str, str], "NAME=ORG/MODEL"] = field(default_factory=dict)
    organisation: Annotated[str, "NAME"] = ""
    relationship: Literal["first_party", "third_party", "collaborative", "other"] = "other"
    deployment: Literal["self_deployed", "externally_managed", "unknown"] = "unknown"
    availability: Literal["open_weights", "closed_weights", "unknown"] = "unknown"
    date: Annotated[str, "DATE"] = ""

    def __post_init__(self) -> None:
        for where, name in (("--repo", self.repo), *((f"--model {key}", one) for key, one in self.model.items())):
            if name and not _NAME.fullmatch(name):
                raise UsageError("Invalid name on the hub", where=where[:80], expected="ORG/NAME", found=name[:80])
        if self.date:
            self.moment()

    def moment(self) -> datetime:
        """Return the beginning of the day of the evaluation."""
        try:
            return datetime.strptime(self.date, "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            raise UsageError(
                "Invalid date", where="--date", expected="YYYY-MM-DD", found=self.date[:40] or "none"
            ) from None


def markdown(board: Leaderboard) -> str:
    """Return a table a group, the best of each number in bold."""
    return "\n".join([f"# {plain(board.file)}\n", *markdown_groups(board.groups, "##")])


def markdown_groups(groups: Sequence[Group], level: str) -> list[str]:
    """Return the table of each group below a heading of a level (``##``)."""
    parts = []
    for group in groups:
        best = _best(group)
        rows = [
            [f"**{cell}**" if (number, place) in best else cell for place, cell in enumerate(map(plain, row))]
            for number, row in enumerate(_cells(group))
        ]
        heads = list(map(plain, _heads(group)))
        ruled = ["---:" if one else "---" for one in _numeric(group)]
        lines = ["| " + " | ".join(row) + " |" for row in (heads, ruled, *rows)]
        facts = [f"- {plain(one)}" for one in group.facts()]
        parts.append("\n".join([f"{level} {group.number}. {plain(group.title)}", "", *facts, "", *lines, ""]))
    return parts


def csv(board: Leaderboard) -> str:
    """Return one table: a row a method and group, a column a number, an empty cell where there is none."""
    metrics = list(dict.fromkeys(name for group in board.groups for name in group.metrics))
    about = ("group", "protocol", "data", "part", "variant", "settings", "evaluator", "rank", "method", "read_at")
    rows = [
        (
            group.number,
            group.key.protocol,
            group.key.data,
            group.key.part,
            group.key.profile,
            group.key.settings,
            group.key.evaluator,
            one.rank,
            one.name,
            one.point,
            one.row.predictions,
            *(one.row.metrics[name].value if name in one.row.metrics else None for name in metrics),
        )
        for group in board.groups
        for one in group.rows
    ]
    return as_csv((*about, "predictions", *metrics), rows)


def latex(board: Leaderboard) -> str:
    """Return a table a group to be included, ruled by booktabs: the best in bold, digests and settings as comments."""
    parts = [f"% {printable(board.file)} {board.digest}\n% needs \\usepackage{{booktabs}}"]
    for group in board.groups:
        facts = [f"% {printable(one)}" for one in (group.title, *group.facts())]
        facts += [f"% {printable(one.name)}: predictions {one.row.predictions}" for one in group.rows]
        table = latex_table(_heads(group), _cells(group), numeric=_numeric(group), bold=_best(group))
        parts.append("\n".join([*facts, table]))
    return "\n\n".join(parts)


def _heads(group: Group) -> list[str]:
    return ["rank", "method", *group.heads]


def _numeric(group: Group) -> list[bool]:
    return [True, False, *(True for _ in group.heads)]


def _cells(group: Group) -> list[list[str]]:
    # A method that was read at two points is told apart by them.
    named = [one.name for one in group.rows]
    return [
        [
            "" if one.rank is None else str(one.rank),
            f"{one.name} ({one.point})" if named.count(one.name) > 1 and one.point else one.name,
            *group.cells(one),
        ]
        for one in group.rows
    ]


def _best(group: Group) -> set[tuple[int, int]]:
    """Return row and column of the best value of each number; all that show the same digits are the best."""
    cells = _cells(group)
    found = set()
    for place, (name, metric) in enumerate(group.metrics.items(), len(_heads(group)) - len(group.metrics)):
        values = {
            number: one.row.metrics[name].value
            for number, one in enumerate(group.rows)
            if name in one.row.metrics and one.row.metrics[name].value is not None
        }
        if len(group.rows) > 1 and values:
            chosen = (max if metric.better == "higher" else min)(values, key=lambda one: values[one] or 0)
            found |= {(number, place) for number in values if cells[number][place] == cells[chosen][place]}
    return found


def hub_entries(board: Leaderboard, origin: Origin) -> list[dict[str, Any]]:
    """Return the entries of an ``.eval_results`` file of a model's repository: one a defined number of each row.

    The hub has no direction, and shows the highest as the best: numbers of which lower is better are left out.

    Raises
    ------
    UsageError
        No dataset is named, or the rows are of several methods.
    """
    if not origin.repo:
        raise UsageError("The hub's entries name a dataset", expected="--repo ORG/NAME", found="none")
    methods = list(dict.fromkeys(one.row.name for group in board.groups for one in group.rows))
    if len(methods) > 1:
        raise UsageError(
            "A model's page shows the results of one model",
            expected="rows of one method",
            found=", ".join(methods)[:200],
            hint="a file of results for each method, or --group N",
        )
    entries = []
    for group, one in _rows(board):
        for name, metric in one.row.metrics.items():
            if metric.value is None or metric.better != "higher":
                continue
            task = "/".join(filter(None, (group.key.protocol, group.key.part, group.key.profile, name)))
            entry = {"dataset": {"id": origin.repo, "task_id": task}, "value": metric.value}
            entries.append(entry | ({"date": origin.date} if origin.date else {}) | {"notes": _notes(group, one)})
    return entries


def hub(board: Leaderboard, origin: Origin) -> str:
    """Return `hub_entries` as YAML."""
    import yaml

    return str(yaml.safe_dump(hub_entries(board, origin), sort_keys=False, allow_unicode=True))


def eee_records(board: Leaderboard, origin: Origin) -> dict[PurePosixPath, str]:
    """Return Every Eval Ever records as JSON, one a row with a defined number, by their paths in the datastore.

    The name of a file is made of a digest of its record, so that one record is one file wherever it is made.

    Raises
    ------
    UsageError
        The date or who evaluated is missing.
    """
    if not (origin.date and origin.organisation):
        raise UsageError(
            "A record says who evaluated, and when",
            expected="--set organisation=NAME and --date YYYY-MM-DD",
            found=", ".join(filter(None, (origin.organisation, origin.date)))[:80] or "neither",
        )
    records = {}
    for group, one in _rows(board):
        record = _record(group, one, origin)
        if record["evaluation_results"]:
            maker, _, model = record["model_info"]["id"].rpartition("/")
            text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
            name = uuid.UUID(sha256_of_bytes(text.encode())[7:39], version=4)
            path = PurePosixPath("data", _slug(group.key.protocol), _slug(maker or "unknown"), _slug(model))
            records[path / f"{name}.json"] = text
    return records


def _record(group: Group, one: RankedRow, origin: Origin) -> dict[str, Any]:
    row = one.row
    stamp = str(int(origin.moment().timestamp()))
    model = origin.model.get(row.name, row.name)
    return {
        "schema_version": EEE_VERSION,
        "evaluation_id": f"{group.title.replace(' · ', '/')}/{model}/{stamp}",
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": origin.organisation,
            "evaluator_relationship": origin.relationship,
        },
        "eval_library": {
            "name": "curation",
            "version": row.evaluator.curation,
            "additional_details": {"algorithm": str(row.evaluator.algorithm)},
        },
        "model_info": {
            "name": one.name,
            "id": model,
            **({} if "/" in model else {"developer": "unknown"}),
            "additional_details": {
                "deployment_type": origin.deployment,
                "model_availability": origin.availability,
                "predictions": row.predictions,
                **row.operating_point,
            },
        },
        "evaluation_results": [
            _eee_result(group, row, name, metric, metric.value, origin)
            for name, metric in row.metrics.items()
            if metric.value is not None
        ],
    }


def _eee_result(group: Group, row: Row, name: str, metric: Metric, value: float, origin: Origin) -> dict[str, Any]:
    measure = measure_of(measures_of(row.protocol), name)
    low, high = _BOUNDS.get(metric.unit, ("-Infinity", "Infinity"))
    base, _, parameter = name.partition("@")
    details = {"truth": row.truth, "part": row.part, "variant": row.profile}
    if row.manifest is not None:
        details |= {"version": row.manifest.version, "digest": row.manifest.digest}
    data: dict[str, Any] = {
        "dataset_name": row.manifest.name if row.manifest else row.truth,
        "source_type": "hf_dataset" if origin.repo else "other",
        **({"hf_repo": origin.repo} if origin.repo else {}),
        "additional_details": {key: text for key, text in details.items() if text},
    }
    return {
        "evaluation_name": group.title,
        "source_data": data,
        "metric_config": {
            "evaluation_description": measure.formula if measure else name,
            "metric_id": f"curation.{row.protocol}.{row.profile or 'default'}.{name}",
            "metric_name": measure.name if measure else name,
            "metric_kind": base,
            "metric_unit": _UNITS.get(metric.unit, metric.unit),
            "metric_parameters": {"at": parameter, **row.settings} if parameter else dict(row.settings),
            "lower_is_better": metric.better == "lower",
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {"score": value},
    }


def _rows(board: Leaderboard) -> Iterator[tuple[Group, RankedRow]]:
    yield from ((group, one) for group in board.groups for one in group.rows)


def _notes(group: Group, one: RankedRow) -> str:
    facts = (group.key.data, group.key.settings, group.key.evaluator, one.point, f"predictions {one.row.predictions}")
    return "; ".join(filter(None, facts))


def _slug(text: str) -> str:
    """Return a text as the name of a folder that leaves no root."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:96] or "unnamed"


def write_records(board: Leaderboard, origin: Origin, folder: Path) -> list[Path]:
    """Write `eee_records` below a folder, each whole or absent."""
    records = {folder / path: text for path, text in eee_records(board, origin).items()}
    for path, text in records.items():
        write_text(path, text)
    return list(records)


FORMS: dict[str, Callable[[Leaderboard, Origin], str]] = {
    "html": lambda board, _: board.html(),
    "markdown": lambda board, _: markdown(board),
    "csv": lambda board, _: csv(board),
    "latex": lambda board, _: latex(board),
    "hub": hub,
}
"""The forms that are one text."""
