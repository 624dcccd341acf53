"""`load`, `evaluate`, `diff` and `export`: what of the public interface is no single package's own."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from curation.core.arguments import alternatives, annotations_of, checked, shown
from curation.core.errors import CurationError, ManifestError, UsageError
from curation.publishing.formats.plan import FormatOptions
from curation.sources.source_specs import BadBoxes, Reading, Sources

if TYPE_CHECKING:
    from curation.evaluation.result import Result
    from curation.extensions.diff.results import ResultDiff
    from curation.extensions.diff.score_files import ScoresDiff
    from curation.manifest.diff import ManifestDiff
    from curation.manifest.manifest import Manifest
    from curation.publishing.exporting import Exported

_Form = Literal[
    "coco", "voc", "yolo", "txt", "owod", "elephant-json", "imagenet-csv", "findmeifyoucan", "openood-imglist"
]
_PUBLISHED = re.compile(r"[\w.-]+/[\w.-]+@[0-9]+\.[0-9]+\.[0-9]+")


@checked
def load(target: str | Path) -> Manifest:
    """Return a manifest, every digest checked.

    Parameters
    ----------
    target : str or Path
        Its folder, its name (``elephant/val2017``, ``NAME@VERSION``), or ``ORG/NAME@VERSION`` of a publication with one
        manifest on the hub, which is pulled into the cache.

    Raises
    ------
    ManifestError
        There is none, or the files are not those that the digests stand for.

    Examples
    --------
    >>> import curation
    >>> curation.load("elephant/val2017")
    <Manifest elephant/val2017 1.0.0, regenerated, 3 parts, 3 with lists, sha256:343e1b28cb1d>
    """
    from curation.manifest.locate import load_manifest

    try:
        return load_manifest(target)
    except ManifestError:
        if Path(str(target)).exists() or not _PUBLISHED.fullmatch(str(target)):
            raise
        found = _from_hub(str(target))
        if found is None:
            raise
        return found


@checked
def export(
    manifest: str | Path | Manifest,
    part: Annotated[Sequence[str] | str, Meta(min_length=0)],
    form: Annotated[_Form | str, "--format"],
    out: Path,
    *,
    sources: Sources | None = None,
    each: bool = False,
    photos: Annotated[Mapping[str, Path] | Path | None, "[SOURCE=]ROOT"] = None,
    options: FormatOptions | None = None,
    reading: Reading | None = None,
) -> Exported:
    """Write parts as COCO JSON, VOC XML, YOLO, id lists, or in the layout of the authors' files.

    Parameters
    ----------
    manifest : str, Path or Manifest
        a folder, or NAME@VERSION of an available manifest
    part : str or sequence of str
        a part to write, a pattern such as 't*-test', or all; several go into one output (repeatable; owod takes all
        parts by default, findmeifyoucan all splits)
    form : str
        what to write: of a format of detectors, or of the layout of a benchmark's authors
    out : Path or str
        a new folder; for one file, a new file that ends in .json (coco, elephant-json) or .txt (txt)
    sources : mapping of str to path or annotations, optional
        ids alone need none
    each : bool
        coco, voc, yolo: every part on its own, a file PART.json or a folder PART in --out
    photos : path, or mapping of str to path, optional
        yolo: folder of photos, to read sizes that the annotations lack
    options, reading : optional
        See `curation.publishing.formats.plan.FormatOptions` and `curation.sources.source_specs.Reading`.

    Raises
    ------
    UsageError, ExportError, ManifestError
        See `curation.publishing.exporting.export`.

    Examples
    --------
    >>> import curation, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     curation.export("elephant/val2017", "closed", "txt", pathlib.Path(folder) / "closed.txt").plan.counts
    {'images': 4952}
    """
    from curation.benchmarks.registry import formats
    from curation.manifest.locate import load_manifest
    from curation.manifest.manifest import Manifest
    from curation.publishing.exporting import export as write

    loaded = manifest if isinstance(manifest, Manifest) else load_manifest(manifest)
    parts = [part] if isinstance(part, str) else part
    return write(
        loaded,
        parts,
        form,
        sources or {},
        out,
        each=each,
        photos={"": photos} if isinstance(photos, Path) else photos,
        options=options,
        reading=reading,
        formats=formats(),
    )


def _from_hub(target: str) -> Manifest | None:
    """Return the one manifest of a publication, None where the hub cannot be asked or has none of the name."""
    from curation.core.errors import MissingExtraError, PublishError
    from curation.manifest.manifest import read_manifest
    from curation.publishing.hub import pull
    from curation.sources.cache import default_folder

    name, _, version = target.partition("@")
    cache = default_folder()
    if cache is None:
        return None
    folder = cache / "publications" / name.replace("/", "--") / version
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            pull(target, folder)
    except (MissingExtraError, PublishError):
        return None
    headers = sorted(folder.glob("**/manifest.json"))
    if len(headers) != 1:
        raise UsageError(
            "The publication does not hold one manifest",
            where=target,
            found=f"{len(headers)}",
            hint=f"curation pull {target} --out DIR",
        )
    return read_manifest(headers[0])


@partial(checked, called="evaluate", hint="help(curation.evaluate)")
def _evaluate(name: Any, **inputs: Any) -> Result:
    """Score predictions by the rules of a benchmark."""
    from curation.benchmarks.registry import evaluation_of

    return _evaluated(evaluation_of(name if isinstance(name, str) else shown(name)), name, inputs)


class Evaluate:
    """Score predictions by the rules of a benchmark.

    ``curation.evaluate("owod", ...)`` and ``curation.evaluate.owod(...)`` are the same, and
    ``help(curation.evaluate.owod)`` explains all arguments. The benchmarks are ``elephant``, ``findmeifyoucan``,
    ``imagenet``, ``imagenetood``, ``ninco``, ``nuowodb``, ``openood``, ``osod3``, ``ovcoco``, ``owod``, ``rwd``,
    ``ssb``, ``voc``, ``coco``, and those of other packages.

    Parameters
    ----------
    name : str
        The benchmark.
    **inputs
        Truth and detections may be paths, COCO dictionaries or results, DataFrames, or FiftyOne views; the fields of a
        record of options may be named themselves (``bad_boxes="drop"``). ``variants=("clean", "ore")`` names variants
        of the measures, which are ``--variant`` on the command line.

    Raises
    ------
    UsageError
        No such benchmark, or it takes no such argument.
    CurationError
        Whatever is wrong in an input.

    Examples
    --------
    >>> import curation
    >>> truth = {"images": [{"id": 1, "width": 50, "height": 50, "file_name": "1.jpg"}],
    ...          "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81,
    ...                           "iscrowd": 0}],
    ...          "categories": [{"id": 1, "name": "owl"}]}
    >>> found = [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.9}]
    >>> curation.evaluate.voc(truth=truth, detections=found)["mAP11"]
    100.0
    """

    def __init__(self) -> None:
        self.__name__ = "evaluate"
        self.__wrapped__ = _evaluate

    def __call__(self, *name: Any, **inputs: Any) -> Result:
        """Evaluate by a benchmark."""
        return _evaluate(*name, **inputs)

    def __getattr__(self, name: str) -> Callable[..., Result]:
        from curation.benchmarks.registry import protocols

        if name.startswith("_") or name not in protocols():
            near = get_close_matches(name, () if name.startswith("_") else protocols(), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise AttributeError(f"curation.evaluate has no benchmark {name!r}{hint}", name=name, obj=self)
        made = _benchmark_function(name)
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        from curation.benchmarks.registry import protocols

        return [*protocols()]

    def __repr__(self) -> str:
        return f"<curation.evaluate: {', '.join(dir(self))}>"


evaluate = Evaluate()


def _benchmark_function(name: str) -> Callable[..., Result]:
    """Return the evaluation of a benchmark as a function that names every argument, fields of records included."""
    from curation.benchmarks.registry import evaluation_of

    function = evaluation_of(name)

    def evaluation(*given: Any, **inputs: Any) -> Result:
        return _evaluate(name, *given, **inputs)

    parameters: list[inspect.Parameter] = []
    sections = [inspect.getdoc(function) or ""]
    for key, parameter in inspect.signature(function).parameters.items():
        kind = annotations_of(function).get(key, Any)
        record = next((member for member in alternatives(kind) if dataclasses.is_dataclass(member)), None)
        if record is None or not all(field.kw_only for field in dataclasses.fields(record)):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))
            continue
        texts = [inspect.cleandoc(cls.__doc__) for cls in reversed(record.__mro__[:-1]) if cls.__doc__]  # type: ignore[union-attr]
        sections += [f"Arguments that `{key}` holds too.", *texts]
        for field_name, field in inspect.signature(record).parameters.items():  # type: ignore[arg-type]
            own = annotations_of(record).get(field_name, Any)  # type: ignore[arg-type]
            parameters.append(field.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own))
    if _variant_kind(function) is not None:
        several = inspect.Parameter("variants", inspect.Parameter.KEYWORD_ONLY, default=None)
        parameters.append(several.replace(annotation=str | Sequence[str] | None))
    unique = {parameter.name: parameter for parameter in reversed(parameters)}
    evaluation.__signature__ = inspect.Signature([*reversed(unique.values())])  # type: ignore[attr-defined]
    evaluation.__name__, evaluation.__qualname__ = name, f"curation.evaluate.{name}"
    evaluation.__doc__ = "\n\n".join(sections)
    return evaluation


@checked
def diff(
    old: Manifest | Result | Path | str, new: Manifest | Result | Path | str
) -> ManifestDiff | ResultDiff | ScoresDiff:
    """Compare two manifests, two results of one evaluation, or two files of OOD scores.

    Parameters
    ----------
    old, new : Manifest, Result, Path or str
        a manifest, its folder or NAME@VERSION; a result, its folder or JSON file; a file of OOD scores; or, beside a
        result, a file of another evaluator's numbers

    Raises
    ------
    ManifestError, EvaluationError, UsageError
        There is none, or the two are not of one kind or evaluation.

    Examples
    --------
    >>> import curation
    >>> curation.diff("elephant/val2017", "elephant/val2017").verdict
    'none'
    """
    from curation.extensions.diff.results import compare_files
    from curation.manifest.diff import diff_manifests

    if (found := compare_files(old, new)) is not None:
        return found
    return diff_manifests(*(load(side) if isinstance(side, str | Path) else side for side in (old, new)))  # type: ignore[arg-type]


def _evaluated(function: Callable[..., Result], name: str, inputs: dict[str, Any]) -> Result:
    """Call an evaluation with what is given, files made of what is in memory."""
    if "variants" in inputs and (kind := _variant_kind(function)) is not None:
        inputs = _with_variants(kind, inputs, name)
    with TemporaryDirectory(prefix="curation-") as folder:
        # Unusable boxes of a truth in memory are treated as those of one in a file.
        asked = inputs.get("bad_boxes", getattr(inputs.get("reading"), "bad_boxes", "error"))
        bad_boxes: BadBoxes = "drop" if asked == "drop" else "error"
        given = {key: _usable(key, value, Path(folder), bad_boxes) for key, value in inputs.items()}
        try:
            return function(**_grouped(function, given, name))
        except CurationError as error:
            # What was in memory has a file for this call alone: its folder tells nobody anything.
            error.where = error.where and error.where.replace(f"{folder}{os.sep}", "")
            raise


def _usable(key: str, value: Any, folder: Path, bad_boxes: BadBoxes) -> Any:
    """Return an input as the functions take it: truth as a source, detections as a file."""
    if isinstance(value, str | os.PathLike) and key in ("truth", "detections", "against"):
        return value  # The evaluation makes a path of it, as of every other.
    if isinstance(value, Mapping) and (key == "manifest" or (key == "truth" and "images" not in value)):
        return {part: _usable(key, file, folder, bad_boxes) for part, file in value.items()}
    if key == "truth":
        from curation.sources.coerce import as_source

        return as_source(value, dataset="coco", part="test", bad_boxes=bad_boxes)
    if key == "manifest" and isinstance(value, os.PathLike):
        return str(value)
    if key == "detections":
        from curation.sources.detector_objects import is_by_image

        if isinstance(value, Mapping) and not {"bbox", "boxes"} & value.keys() and not is_by_image(value):
            parts = enumerate(value.items())
            return {part: _usable(key, file, folder / str(number), bad_boxes) for number, (part, file) in parts}
        return _written(value, folder)
    return value


def _written(value: Any, folder: Path) -> Path:
    """Write detections that are in memory as COCO results, so that one reader checks them, and return the file."""
    from curation.sources.detector_objects import is_by_image, rows_by_image
    from curation.sources.fiftyone_view import is_view, results_of_view
    from curation.sources.in_memory import json_bytes, results_bytes

    value = rows_by_image(value) if is_by_image(value) else value
    data = json_bytes(results_of_view(value)) if is_view(value) else results_bytes(value)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{type(value).__name__}.json"
    path.write_bytes(data)
    return path


def _variant_kind(function: Callable[..., Any]) -> Any:
    """Return what an evaluation, or a record of its options, takes as ``variant``; None where it has no variants."""
    hints = annotations_of(function)
    records = [hint for hint in hints.values() if isinstance(hint, type) and dataclasses.is_dataclass(hint)]
    return next((found["variant"] for found in (hints, *map(annotations_of, records)) if "variant" in found), None)


def _with_variants(kind: Any, inputs: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return inputs with ``variants`` as the parameter ``variant``: one, several, or ``all`` where these are all."""
    if "variant" in inputs:
        raise UsageError("variants and variant say the same", found=f"both, for the evaluation {name}")
    given = inputs["variants"]
    several = [*given] if isinstance(given, Collection) and not isinstance(given, str) else [given]
    words = {word for choice in alternatives(kind) for word in typing.get_args(choice)} - {"all"}
    value = several[0] if len(several) == 1 else given
    rest = {key: asked for key, asked in inputs.items() if key != "variants"}
    return {**rest, "variant": "all" if len(several) > 1 and {*map(str, several)} == words else value}


def _grouped(function: Callable[..., Any], inputs: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return inputs with the fields of a record of options put into that record."""
    parameters = inspect.signature(function).parameters
    hints = annotations_of(function)
    records = {key: annotations_of(hints[key]) for key in parameters if dataclasses.is_dataclass(hints.get(key))}
    given = {key: _in_text(value, hints[key]) for key, value in inputs.items() if key in parameters}
    loose = {key: value for key, value in inputs.items() if key not in parameters}
    for key, kinds in records.items():
        if key not in given and (own := kinds.keys() & loose.keys()):
            given[key] = hints[key](**{field: _in_text(loose.pop(field), kinds[field]) for field in own})
    if loose:
        known = [*parameters, *(field for kinds in records.values() for field in kinds)]
        near = get_close_matches(min(loose), known, 1)
        raise UsageError(
            f"The evaluation {name} takes no input of this name",
            found=", ".join(sorted(loose)),
            expected=", ".join(known),
            hint=f"did you mean {near[0]}?" if near else f"help(curation.evaluate.{name})",
        )
    missing = [key for key, param in parameters.items() if param.default is param.empty and key not in given]
    if missing:
        raise UsageError(
            f"The evaluation {name} lacks an input",
            expected=", ".join(missing),
            found=", ".join(given) or "none",
            hint=f"help(curation.evaluate.{name})",
        )
    return given


def _in_text(value: Any, kind: Any) -> Any:
    """Return a number as its text where that alone is wanted: of an exact decimal, the text is the number."""
    kinds = alternatives(kind)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return str(value) if is_number and str in kinds and not {int, float} & {*kinds} else value
