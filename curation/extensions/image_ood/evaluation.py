"""Evaluation of ID scores against several OOD sets, by variant, group and run, and with images left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from curation.core.errors import EvaluationError, UsageError
from curation.core.files import missing_path
from curation.core.process import stage
from curation.evaluation.inputs import manifest_record
from curation.evaluation.measures import Measured, Number, Scored, Value
from curation.evaluation.problem import Bools, Floats, Int64s
from curation.evaluation.result import Report, Result
from curation.evaluation.score_files import Keys
from curation.evaluation.separability import sign_doubt
from curation.evaluation.variants import offer, select
from curation.extensions.image_ood.images import (
    SUFFIXES,
    UNJUDGED,
    LeftOut,
    ScoredSet,
    listed_set,
    read_image_scores,
    scored_set,
)
from curation.extensions.image_ood.measures import (
    COMPARED,
    DEFINITIONS,
    FPR_RULES,
    NUMBERS,
    OodRules,
    mean_of,
    numbers_of,
    report_as,
    require_usable,
)
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest

PUBLISHED = "published"
"""Name of the results on all images, with nothing left out."""
CLASSES = "classes"
"""The group of the per-class sets of `OodSets.by_class`."""
_NOTHING: Mapping[str, Path] = MappingProxyType({})


class OodSets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sets that a benchmark scores, their groups, and the variants of the measures.

    Attributes
    ----------
    id : str
        The ID set.
    groups : mapping of str to tuple of str
        OOD sets by group; a group's row is the plain mean of its sets.
    shifted : tuple of str
        Covariate-shifted ID sets, which are ID in a second setting, ``fsood``.
    by_class : str
        The OOD set whose classes are also scored separately; ``classes`` is then the group of these per-class sets.
    algorithm : int
        Version of the results.
    variants : mapping of str to OodRules
        The first is the default.
    """

    id: str
    groups: dict[str, tuple[str, ...]] = {}
    shifted: tuple[str, ...] = ()
    by_class: str = ""
    algorithm: int = 1
    variants: dict[str, OodRules]

    @property
    def sets(self) -> tuple[str, ...]:
        """Every set, the ID one first."""
        of_groups = (name for names in self.groups.values() for name in names)
        return tuple(dict.fromkeys((self.id, *self.shifted, *of_groups, *filter(None, [self.by_class]))))


@dataclass(frozen=True, slots=True)
class Run:
    """The sets of a run."""

    id: ScoredSet
    shifted: Mapping[str, ScoredSet]
    oods: Mapping[str, ScoredSet]

    @property
    def all(self) -> tuple[ScoredSet, ...]:
        """Every set once."""
        return (self.id, *self.shifted.values(), *self.oods.values())

    def kept_by(self, left: LeftOut) -> list[Bools]:
        """Return a mask of the images of each set that remain after a list is left out."""
        return [left.kept_rows(scored, is_ood=scored.name in self.oods) for scored in self.all]

    def notes(self, rules: Sequence[OodRules]) -> list[str]:
        """Return notes on scores that are not finite, are all equal, or belong to another set."""
        notes = [require_usable(scored, rules) for scored in self.all]
        same: dict[bytes, str] = {}
        for scored in self.all:
            if len(scored) > 1 and (scored.scores == scored.scores[0]).all():
                notes.append(f"all scores of {scored.name} are equal: they do not rank its images")
            elif (first := same.setdefault(scored.scores.tobytes(), scored.name)) != scored.name:
                notes.append(f"{scored.name} has the scores of {first}, row by row: was one file saved twice?")
        return list(filter(None, notes))


def evaluation_as(report: Report, benchmark: OodSets) -> Callable[..., Result]:
    """Return the function that scores OOD detection for a benchmark; its signature declares the options."""

    def evaluate(
        *,
        scores: Annotated[Mapping[str, Path] | Path, "[NAME=]PATH"],
        manifest: Annotated[str | Manifest | None, "MANIFEST"] = None,
        lists: Annotated[Path | None, "DIR"] = None,
        variant: str | tuple[str, ...] = next(iter(benchmark.variants)),
        without: Annotated[Mapping[str, Path], "NAME=LIST"] = _NOTHING,
        score_key: Annotated[str | None, "KEY"] = None,
        label_key: Annotated[str | None, "KEY"] = None,
        image_key: Annotated[str | None, "KEY"] = None,
        stray: Literal["error", "drop"] = "error",
    ) -> Result:
        """Score image-level OOD detection: AUROC, AUPR with ID and with OOD positive, FPR95, accuracy.

        Parameters
        ----------
        scores : mapping of str to Path, or Path
            a folder with one file a set, SET.csv, .npz or .npy; of several training runs one each, and then mean and
            population standard deviation are given too; higher is more ID
        manifest : str or Manifest, optional
            its parts list the images of each set
        lists : Path, optional
            folder of imglists, test_SET.txt or SET.txt: images and labels, in the order of rows without names
        variant : str or tuple of str
            variant of the measures
        without : mapping of str to Path
            the numbers once more without some images, under a name of your own: the OOD images of a list, those that
            decisions remove (.jsonl or .csv), or those that a cleaned manifest lacks
        score_key, label_key, image_key : str, optional
            name of the column or array, if it is not a usual one
        stray : {"error", "drop"}
            scores of images that a set lacks: refuse, or leave out and report

        Raises
        ------
        UsageError, MissingFileError, EvaluationError, PredictionError
            Options do not fit together; or a file is missing or invalid.

        Examples
        --------
        >>> import curation, pandas, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, scores in {"{id}": [0.9, 0.7], "{ood}": [0.8, 0.1]}.items():
        ...         table = pandas.DataFrame({"image": ["owl/1.jpg", "owl/2.jpg"], "score": scores})
        ...         table.to_csv(pathlib.Path(folder) / f"{name}.csv", index=False)
        ...     curation.evaluate.{benchmark}(scores=folder)["ood/{ood}/exact/AUROC"]
        0.75
        """
        rules = select(benchmark.variants, variant)
        loaded = load_manifest(manifest) if isinstance(manifest, str) else manifest
        reader = _Reader(benchmark, loaded, lists, Keys(score_key, label_key, image_key), stray)
        with stage("reading scores"):
            paths = scores if isinstance(scores, Mapping) else {"": scores}
            runs = {name or path.stem: reader.run(path) for name, path in paths.items()}
            _require_same_sets(runs)
        sets = {member.name for run in runs.values() for member in run.all}
        if PUBLISHED in without:
            raise UsageError("Reserved name of a list", where=f"--without {PUBLISHED}", hint="choose another name")
        left_out = {name: LeftOut.read(name, removed, sets) for name, removed in without.items()}
        notes = [
            f"{name}: {note}" if len(runs) > 1 else note for name, run in runs.items() for note in run.notes(rules)
        ]
        measured = {name: _Measured(run, benchmark, rules, left_out) for name, run in runs.items()}
        first = next(iter(runs.values()))
        records = {name: _list_record(left_out.get(name), first) for name in (PUBLISHED, *left_out)}
        notes += [note for record in records.values() for note in record["notes"]]
        about = {
            "manifest": manifest_record(loaded),
            "option_files": {"without": {name: left.file for name, left in left_out.items()}} if left_out else {},
            "inputs": {name: {member.name: member.file for member in run.all} for name, run in runs.items()},
            "definitions": DEFINITIONS,
            "variants": {
                rule.name: {"meaning": rule.meaning, "FPR95": rule.fpr, "rule": FPR_RULES[rule.fpr]} for rule in rules
            },
            "groups": next(iter(measured.values())).groups,
            "shifted": list(first.shifted),
            "lists": records,
        }
        with stage("evaluating"):
            scored = list(_scored(measured, about))
        for name, run in runs.items():
            rows = [row for row in scored if (row.method, row.task, row.split) == (name, "ood", "")]
            areas = {
                row.case: next(value.value for value in row.found.values if value.measure == "AUROC")
                for row in rows
                if row.found and row.case in run.oods
            }
            notes += [f"{name}: {doubt}" if len(runs) > 1 else doubt for doubt in sign_doubt(areas)]
        return Result(report, about, scored=scored, notes=notes)

    offer(evaluate, benchmark.variants)
    return evaluate


def sets_of(table: Mapping[str, Any]) -> OodSets:
    """Return the sets and variants that a benchmark declares."""
    variants = {name: {"name": name, **rules} for name, rules in table["variants"].items()}
    return msgspec.convert(
        {key: value for key, value in table.items() if key != "engine"} | {"variants": variants}, OodSets
    )


def declared(protocol: str, facts: Mapping[str, Any]) -> tuple[Callable[..., Result], Report]:
    """Return the evaluation of the sets and variants that a benchmark declares, and its report."""
    sets = sets_of(facts["evaluation"])
    report = report_as(protocol, algorithm=sets.algorithm)
    evaluate, ood = evaluation_as(report, sets), next(name for name in sets.sets[1:] if name not in sets.shifted)
    evaluate.__doc__ = (evaluate.__doc__ or "").replace("{id}", sets.id).replace("{ood}", ood)
    return evaluate, report


def _require_same_sets(runs: Mapping[str, Run]) -> None:
    """Raise an error for runs with different sets or numbers of images, which have no meaningful mean."""
    sizes = {name: {scored.name: len(scored) for scored in run.all} for name, run in runs.items()}
    first, *others = sizes
    for name in others:
        unlike = [key for key in {**sizes[first], **sizes[name]} if sizes[first].get(key) != sizes[name].get(key)]
        if unlike:
            expected, actual = (
                ", ".join(f"{key}: {sizes[run].get(key, 'no')} images" for key in unlike[:5]) for run in (first, name)
            )
            raise EvaluationError(
                "The runs have scores of different sets, so they have no mean",
                where=f"--scores {name}",
                expected=f"{expected}, as {first}",
                found=actual,
                hint="score every run on the same images, or evaluate it alone",
            )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the sets of a run from a folder with a file each."""

    benchmark: OodSets
    manifest: Manifest | None
    lists: Path | None
    keys: Keys
    stray: Literal["error", "drop"]

    def run(self, path: Path) -> Run:
        """Return the sets of a run."""
        if not path.exists():
            raise missing_path("The scores do not exist", path, expected="a folder")
        if not path.is_dir():
            raise UsageError("The scores are not a folder", where=str(path), expected="a folder with one file a set")
        sets = dict(self._of_folder(path))
        shifted = {name: sets.pop(name) for name in self.benchmark.shifted if name in sets}
        ids = sets.pop(self.benchmark.id, None)
        if ids is None or not sets:
            ood = [name for name in self.benchmark.sets if name not in (self.benchmark.id, *self.benchmark.shifted)]
            raise EvaluationError(
                "No scores of the ID set" if ids is None else "No scores of an OOD set",
                where=str(path),
                expected=self.benchmark.id if ids is None else f"one or more of {', '.join(ood)}, or sets of your own",
                found=", ".join([*shifted, *sets]) or ("nothing" if ids is None else f"{self.benchmark.id} alone"),
            )
        groups = {*self.benchmark.groups, *([CLASSES] if self.benchmark.by_class else [])}
        if clashes := sorted((sets.keys() - {*self.benchmark.sets}) & groups):
            raise UsageError("Set name clashes with a group", where=f"{path}: {clashes[0]}", hint="rename its file")
        order = [name for name in self.benchmark.sets if name in sets]
        oods = {name: sets[name] for name in (*order, *sorted(sets.keys() - set(order)))}
        return Run(ids, shifted, oods)

    def _of_folder(self, folder: Path) -> Iterator[tuple[str, ScoredSet]]:
        if (folder / "results.json").is_file():
            raise UsageError(
                "The folder of scores holds results of an evaluation",
                where=str(folder),
                found="results.json",
                hint="move it and its tables elsewhere; --out takes another folder than --scores",
            )
        paths: dict[str, Path] = {}
        for path in sorted(folder.iterdir()):
            # Scores for choosing hyper-parameters are skipped; other tables are refused below.
            is_table = path.suffix.lower() in (*SUFFIXES, ".json", ".parquet")
            if not is_table or path.stem == "val" or path.name.startswith("val_"):
                continue
            name = path.stem.removeprefix("test_")
            if name in paths:
                raise UsageError(
                    "Two files hold the scores of the same set",
                    where=str(folder),
                    found=f"{paths[name].name}, {path.name}",
                )
            paths[name] = path
        for name, path in paths.items():
            listed = listed_set(name, self.manifest, self.lists)
            yield name, scored_set(name, read_image_scores(path, self.keys), listed, self.stray)


RowKey = tuple[str, str, str]
"""Setting, variant, and set or group."""


class _Row(NamedTuple):
    """The numbers of a set or group.

    Attributes
    ----------
    numbers : mapping of str to float or None
        `NUMBERS`, and their deviations if there are several runs.
    n : mapping of str to int
        Number of images, ``id`` and ``ood``, and of ``runs`` if there are several.
    undefined : mapping of str to str
        Why a number is not defined.
    """

    numbers: Mapping[str, Number | None]
    n: Mapping[str, int]
    undefined: Mapping[str, str]

    def values(self) -> list[Value]:
        """Return a value for each number, with the number of images or runs that it is based on."""
        counted = dict.fromkeys(self.numbers, "runs") | {"AUROC": "ood", "FPR95": "ood", "AUPR_OUT": "ood"}
        counted |= {"AUPR_IN": "id", "ACC": "id"}
        return [
            Value(key, value, n=self.n[counted[key]], undefined=self.undefined.get(key, ""))
            for key, value in self.numbers.items()
        ]


def _scored(measured: Mapping[str, _Measured], about: Mapping[str, Any]) -> Iterator[Scored]:
    """Yield the results of each run and the mean over several runs, by list, setting, variant and row."""
    results = {name: {which: run.rows(which) for which in run.masks} for name, run in measured.items()}
    several = len(results) > 1
    if several:
        first = next(iter(results.values()))
        results["mean"] = {
            which: {key: _over_runs([results[name][which][key] for name in measured]) for key in rows}
            for which, rows in first.items()
        }
    for method, lists in results.items():
        run_name = method if method in measured else next(iter(measured))
        for which, rows in lists.items():
            record = about["lists"][which]
            for key, row in rows.items():
                setting, variant, name = key
                yield Scored(
                    part=name,
                    case=name,
                    task=setting,
                    split="" if which == PUBLISHED else which,
                    variant=variant,
                    found=Measured(row.values(), {}),
                    truth={"images": record["images"], "left_out": record.get("file", {}).get("sha256", "")},
                    predictions=about["inputs"][run_name],
                    settings={
                        "FPR95": about["variants"][variant]["FPR95"],
                        "sets": ", ".join(about["groups"].get(name, (name,)))[:200],
                        "shifted": ", ".join(about["shifted"]) if setting == "fsood" else "",
                        "without": "" if which == PUBLISHED else which,
                    },
                    method=method,
                    pinned=about["manifest"] is not None and which == PUBLISHED,
                    of_several=several,
                )


def _list_record(left: LeftOut | None, run: Run) -> dict[str, Any]:
    """Return the record of a list in a result: the images left out of each set, and notes."""
    sizes = {scored.name: len(scored) for scored in run.all}
    if left is None:
        return {"images": sizes, "left_out": {}, "judged": {}, "notes": []}
    retained = {name: int(rows.sum()) for name, rows in zip(sizes, run.kept_by(left), strict=True)}
    removed = {name: size - retained[name] for name, size in sizes.items() if retained[name] < size}
    judged = {scored.name: count for scored in run.all if (count := left.judged_in(scored))}
    notes = [
        UNJUDGED.format(judged=count, images=sizes[name], set=name, removed=removed.get(name, 0))
        for name, count in judged.items()
    ]
    if left.judged is not None and not judged:
        notes.append("unjudged is not clean: the list holds decisions, and images without one may show a known class")
    if not removed:
        notes.append("no image of a set is left out")
    notes = [f"{left.name}: {note}" for note in notes]
    return {"images": retained, "left_out": removed, "judged": judged, "file": left.file, "notes": notes}


@dataclass(frozen=True, slots=True)
class _Column:
    """Columns of a set: scores, whether each prediction is right, and the class number of each image."""

    scores: Floats
    right: Bools | None
    classes: Int64s | None = None

    def take(self, rows: Bools) -> _Column:
        right = None if self.right is None else self.right[rows]
        return _Column(self.scores[rows], right, None if self.classes is None else self.classes[rows])


class _Measured:
    """Computes the numbers of a run, on all images or on a subset."""

    def __init__(
        self, run: Run, benchmark: OodSets, rules: Sequence[OodRules], left_out: Mapping[str, LeftOut]
    ) -> None:
        self.rules = rules
        self.sets = {scored.name: _Column(scored.scores, scored.right) for scored in run.all}
        self.ids = {"ood": [run.id.name]} | ({"fsood": [run.id.name, *run.shifted]} if run.shifted else {})
        self.oods = list(run.oods)
        self.groups = {name: list(sets) for name, sets in benchmark.groups.items()}
        self.by_class = benchmark.by_class if benchmark.by_class in run.oods else ""
        if self.by_class:
            ood = run.oods[self.by_class]
            names, classes = np.unique(ood.classes, return_inverse=True)
            if clashes := sorted({*names.tolist()} & {*run.oods, *self.groups, CLASSES}):
                raise UsageError(
                    "Class name clashes with a set",
                    where=f"set {self.by_class}: {clashes[0]}",
                    hint="the last folder of an image is its class; the file of a set of your own may be renamed",
                )
            self.sets[self.by_class] = _Column(ood.scores, ood.right, classes)
            self.groups = {CLASSES: names.tolist(), **self.groups}
        self.masks: dict[str, list[Bools] | None] = {PUBLISHED: None}
        self.masks |= {name: run.kept_by(left) for name, left in left_out.items()}

    def rows(self, which: str) -> dict[RowKey, _Row]:
        """Return the numbers by setting, variant and row, without the images that a list leaves out."""
        masks = self.masks[which]
        columns = self.sets
        if masks is not None:
            columns = {name: column.take(mask) for (name, column), mask in zip(columns.items(), masks, strict=True)}
        return {
            (setting, variant, name): row
            for setting, ids in self.ids.items()
            for variant, table in self._of_setting([columns[name] for name in ids], columns).items()
            for name, row in table.items()
        }

    def _of_setting(self, ids: Sequence[_Column], columns: Mapping[str, _Column]) -> dict[str, dict[str, _Row]]:
        scores = np.concatenate([column.scores for column in ids])
        right = [column.right for column in ids if column.right is not None]
        known = len(right) == len(ids) and len(scores) > 0
        accuracy = float(np.mean(np.concatenate(right))) if known else None
        shared = {} if known else {"ACC": "predictions and labels of all ID images are not given"}
        oods = {name: columns[name].scores for name in self.oods}
        if self.by_class:
            all_classes = columns[self.by_class]
            for number, name in enumerate(self.groups[CLASSES]):
                oods[name] = all_classes.scores[all_classes.classes == number]
        nothing: dict[str, float | None] = dict.fromkeys(COMPARED)
        results: dict[str, dict[str, _Row]] = {rule.name: {} for rule in self.rules}

        def add(variant: str, name: str, numbers: Mapping[str, Any], n_ood: int, reason: str) -> None:
            undefined = {key: reason for key, value in numbers.items() if value is None} | shared
            results[variant][name] = _Row({**numbers, "ACC": accuracy}, {"id": len(scores), "ood": n_ood}, undefined)

        for name, ood_scores in oods.items():
            both = len(scores) and len(ood_scores)
            measured = numbers_of(scores, ood_scores, self.rules) if both else [nothing] * len(self.rules)
            for rule, numbers in zip(self.rules, measured, strict=True):
                add(rule.name, name, numbers, len(ood_scores), "there are no images left")
        for group, names in self.groups.items():
            missing = [name for name in names if name not in oods]
            n_ood = sum(len(oods[name]) for name in names if name in oods)
            reason = f"no scores of {', '.join(missing)}" if missing else "undefined for one of its sets"
            for rule in self.rules:
                rows = [nothing if name in missing else results[rule.name][name].numbers for name in names]
                add(rule.name, group, mean_of(rows), n_ood, reason)
        return results


def _over_runs(rows: Sequence[_Row]) -> _Row:
    """Return mean and population standard deviation of a row over the runs; their sets are the same."""
    mean, std = {}, {}
    for name in NUMBERS:
        values = [row.numbers[name] for row in rows]
        defined = None not in values
        mean[name] = float(np.mean(values)) if defined else None  # type: ignore[arg-type]
        std[f"{name}_std"] = float(np.std(values)) if defined else None  # type: ignore[arg-type]
    return _Row({**mean, **std}, {**rows[0].n, "runs": len(rows)}, rows[0].undefined)
