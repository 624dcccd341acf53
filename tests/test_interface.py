"""The public interface: every promised name is there, loaded late, documented by an example that runs."""

import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import curation
from curation.benchmarks.registry import protocols
from curation.cli.signature import parameter_texts
from curation.core.arguments import checked
from curation.core.errors import UsageError
from curation.evaluation.inputs import Reading
from curation.evaluation.result import Result
from tests.small_world import write_small_world

NAMES = [name for name in curation.__all__ if name not in ("evaluate", "methods", "__version__")]
FUNCTIONS = [name for name in NAMES if name[0].islower()]
# A function of another module is offered as a method where it is imported under its own name again.
OFFERED = re.findall(r"import (\w+) as \1$", inspect.getsource(curation.methods), re.MULTILINE)
METHODS = [
    name
    for name, value in inspect.getmembers(curation.methods, inspect.isfunction)
    if name in OFFERED or (value.__module__ == curation.methods.__name__ and not name.startswith("_"))
]
EXAMPLES = [*NAMES, *(f"evaluate.{name}" for name in dir(curation.evaluate)), *(f"methods.{name}" for name in METHODS)]
IMAGES = [{"id": n, "file_name": f"{n}.jpg", "width": 60, "height": 60} for n in (1, 2)]
BOX = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]}
TRUTH = {
    "images": IMAGES,
    "annotations": [{"id": 1, "area": 81, "iscrowd": 0, **BOX}],
    "categories": [{"id": 1, "name": "owl"}],
}
FOUND = [{**BOX, "score": 0.9}]


def test_the_import_loads_nothing_of_the_package() -> None:
    code = "import sys, curation; print([name for name in sys.modules if name.startswith('curation.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['curation.version']"


def test_the_page_names_the_public_interface() -> None:
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    section = page.partition("## The public interface\n")[2].partition("\n## ")[0]
    assert {*re.findall(r"`(\w+)`", section)} - {"curation"} == {*curation.__all__} - {"__version__"}


def test_every_benchmark_is_a_function_whose_arguments_are_all_named() -> None:
    assert tuple(dir(curation.evaluate)) == tuple(sorted(protocols()))
    for name in protocols():
        function = getattr(curation.evaluate, name)
        assert name in (inspect.getdoc(curation.evaluate) or "")
        signature = inspect.signature(function)
        told = set(parameter_texts(function))
        assert {*signature.parameters} <= told, name
        assert not {"reading", "policy", "options"} & signature.parameters.keys()
    assert {"bad_boxes", "recalls", "variant"} <= inspect.signature(curation.evaluate.elephant).parameters.keys()
    assert curation.evaluate.voc(truth=TRUTH, detections=FOUND)["mAP11"] == 100
    assert "exemplars" in inspect.signature(curation.audit).parameters
    with pytest.raises(AttributeError, match=r"did you mean owod\?"):
        _ = curation.evaluate.owodd
    with pytest.raises(UsageError, match="did you mean truth"):
        curation.evaluate.voc(truths=1)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_every_public_name_runs(name: str) -> None:
    (found,) = doctest.DocTestFinder(recurse=False).find(attrgetter(name)(curation), name, globs={})
    call = "" if name[0].isupper() else f"{name.rpartition('.')[2]}("
    assert any(call in example.source for example in found.examples)
    if any("torch" in example.source for example in found.examples):
        pytest.importorskip("torch")
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(found).failed == 0


@pytest.mark.parametrize("kind", [curation.CurationError, curation.Manifest, curation.Source, Result])
def test_the_examples_of_a_class_and_of_its_methods_run(kind: type) -> None:
    """The examples of methods continue that of their class; one needs a database."""
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    documented_kinds = (classmethod, property, cached_property) if kind is curation.Source else ()
    methods = {
        name: member
        for name, member in vars(kind).items()
        if (callable(member) or isinstance(member, documented_kinds))
        and (name[0] != "_" or name == "__getitem__")
        and name != "to_fiftyone"
    }
    names: dict[str, Any] = {}
    for name, documented in {kind.__name__: kind, **methods}.items():
        (example,) = finder.find(documented, name, globs=names)
        assert example.examples, name
        assert runner.run(example, clear_globs=False).failed == 0
        names = example.globs


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_explained(name: str) -> None:
    function = getattr(curation, name)
    told = parameter_texts(function)
    named = {one.lstrip("*") for one in told}
    missing = [one for one in inspect.signature(function).parameters if one not in named]
    assert not missing or name == "diff"


@pytest.mark.parametrize("module", [curation.evaluate, curation.methods])
def test_the_example_of_a_module_runs(module: Any) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_sources_in_every_form() -> None:
    rows = [{"image_id": 1, "category": "owl", "x": 0, "y": 0, "w": 9, "h": 9, "width": 60, "height": 60}]
    rows.append({"image_id": 2, "category": None, "width": 60, "height": 60})
    of_frame = curation.open_source("mine", pd.DataFrame(rows))
    of_json = curation.open_source("mine", TRUTH)
    for one in (of_frame, of_json):
        assert one.image_ids.tolist() == ["mine:1", "mine:2"]
        assert one.categories.names == ("owl",)
        assert one.objects is not None
        assert one.objects.boxes.tolist() == [[0, 0, 9, 9]]
    assert curation.open_source("mine", of_json) is of_json
    assert curation.open_source("mine", TRUTH) == of_json != of_frame
    with pytest.raises(UsageError, match="Unsupported annotation type"):
        curation.open_source("mine", 7)
    with pytest.raises(UsageError, match="lacks a column"):
        curation.open_source("mine", pd.DataFrame({"image_id": [1]}))


def test_predictions_in_every_form(tmp_path: Path) -> None:
    frame = pd.DataFrame([{"image_id": 1, "category_id": 1, "x": 0, "y": 0, "w": 9, "h": 9, "score": 0.9}])
    truth, found = tmp_path / "truth.json", tmp_path / "found.json"
    truth.write_text(json.dumps(TRUTH))
    found.write_text(json.dumps(FOUND))
    for detections in (FOUND, frame, found, str(found)):
        for given in (TRUTH, truth, str(truth), curation.open_source("coco", TRUTH)):
            result = curation.evaluate.voc(truth=given, detections=detections)
            assert result["mAP11"] == 100
    with pytest.raises(UsageError, match="takes no input"):
        curation.evaluate.voc(truth=TRUTH, detections=FOUND, truths=1)


def test_a_manifest_for_a_notebook(tmp_path: Path) -> None:
    world = write_small_world(tmp_path, n_closed=3, n_wilderness=10)
    sources = {"voc2007-test": world.voc_root, "coco": world.coco_json}
    made = curation.build("elephant", sources=sources, ratios=["1"], name="mine/elephant", notes=["a note"])
    assert made.parts[:2] == ("closed", "wilderness")
    assert made.header.notes[-1] == "a note"
    frame = made.frame("closed")
    assert frame["image_id"].tolist() == list(made.ids("closed"))
    assert set(made.frame()["part"]) == set(made.parts)
    photos = tmp_path / "photos"
    photos.mkdir()
    for native in frame["native"]:
        (photos / f"{native}.jpg").write_bytes(b"")
    assert made.photos("closed", photos)[made.ids("closed")[0]].parent == photos
    folder = made.save(tmp_path / "made")
    assert curation.load(folder).digest == made.digest
    checked = curation.verify(folder, sources, rebuild=True)
    assert checked.ok
    assert set(checked.to_frame()["outcome"]) == {"ok"}
    assert "<table>" in checked._repr_html_()
    assert "<table>" in made._repr_html_()
    assert curation.diff(folder, made).verdict == "none"
    report = curation.audit(made, sources, rules="DS")
    assert not report.failed
    assert "<table" in report._repr_html_()
    assert "rule" in report.findings


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({}, "expected: detections"),
        ({"truth": TRUTH}, "expected: detections"),
        *(
            ({"truth": TRUTH, "detections": one}, "Unsupported detection type")
            for one in (None, 3, b"x", [1], {"t1": 3})
        ),
        ({"truth": 3, "detections": FOUND}, "Unsupported annotation type"),
        ({"truth": TRUTH, "detections": FOUND, "task": 2}, "this value of task"),
        ({"truth": TRUTH, "detections": FOUND, "variant": "cleann"}, "clean, ore, owdetr, score-free, all"),
        ({"truth": TRUTH, "detections": FOUND, "manifest": ["shapes"]}, "this value of manifest"),
        ({"truth": TRUTH, "detections": FOUND, "manifest": Path("no-such")}, "No such manifest"),
        ({"truth": TRUTH, "detections": FOUND, "any_scores": "yes"}, "this value of any_scores"),
        ({"truth": TRUTH, "detections": FOUND, "variant": "x"}, "this value of variant"),
        ({"truth": FOUND, "detections": TRUTH}, "are they swapped?"),
        ({"truth": {"t1": FOUND}, "detections": {"t1": TRUTH}}, "are they swapped?"),
        (
            {"truth": TRUTH, "detections": FOUND, "reading": Reading(), "bad_boxes": "drop"},
            "reading=Reading(bad_boxes=...)",
        ),
    ],
)
def test_inputs_of_another_kind_are_told_by_name(inputs: dict[str, Any], says: str) -> None:
    with pytest.raises(curation.CurationError, match=re.escape(says)):
        curation.evaluate.owod(**inputs)


@pytest.mark.parametrize("name", sorted(dir(curation.evaluate)))
def test_the_default_of_every_argument_may_be_given(name: str) -> None:
    """A wrapper that hands on all arguments of the signature gets what a call without them gets."""
    evaluation = getattr(curation.evaluate, name)
    parameters = inspect.signature(evaluation).parameters.values()
    required = {one.name: "no-such-file.json" for one in parameters if one.default is one.empty}
    refusals = []
    for optional in (one for one in parameters if one.default is not one.empty):
        for arguments in (required, {**required, optional.name: optional.default}):
            with pytest.raises(curation.CurationError) as caught:
                evaluation(**arguments)
            refusals.append(str(caught.value))
    assert refusals[::2] == refusals[1::2]


def test_advice_in_python_names_arguments_and_works(tmp_path: Path) -> None:
    found = [*FOUND, {**FOUND[0], "image_id": 7}]
    with pytest.raises(curation.CurationError) as caught:
        curation.evaluate.coco(truth=TRUTH, detections=found)
    assert (caught.value.hint or "").startswith("stray='drop' leaves")
    assert curation.evaluate.coco(truth=TRUTH, detections=found, stray="drop")["AP"] == pytest.approx(100)
    path = tmp_path / "found.json"
    path.write_text(json.dumps(FOUND))
    with pytest.raises(curation.CurationError) as caught:
        curation.evaluate.voc(truth=path, detections=TRUTH)
    assert "--" not in str(caught.value)
    with pytest.raises(curation.CurationError) as caught:
        curation.evaluate.voc(truth=TRUTH, detections=FOUND, task="t1", reading=None)
    assert caught.value.hint == "help(curation.evaluate.voc)"


def test_an_error_in_what_was_in_memory_names_no_temporary_folder() -> None:
    with pytest.raises(curation.CurationError) as caught:
        curation.evaluate.voc(truth=TRUTH, detections=pd.DataFrame(FOUND).drop(columns="score"))
    assert caught.value.where == "DataFrame.json: record 0"


PARTS = {
    "truth": {
        "closed": TRUTH,
        "wilderness": {**TRUTH, "images": [{**IMAGES[0], "id": 7, "file_name": "7.jpg"}], "annotations": []},
    },
    "detections": {"closed": FOUND, "wilderness": []},
}
OPEN = {"truth": {**TRUTH, "categories": [{"id": 1, "name": "owl"}, {"id": 2, "name": "unknown"}]}, "detections": FOUND}
LONG = "x" * 5000
PACKAGED = "elephant/val2017"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda api: api.evaluate.owod(**OPEN, variant=("clean", "all")), "Unknown variant"),
        (lambda api: api.evaluate.owod(**OPEN, variant=()), "not empty"),
        (lambda api: api.evaluate.owod(**OPEN, variant=("ore", "ore")), "none twice"),
        (lambda api: api.evaluate.owod(**{**OPEN, "detections": {}}), "help(curation.evaluate.owod)"),
        (lambda api: api.evaluate.owod(**OPEN, manifest=""), "value of manifest"),
        (lambda api: api.evaluate.owod(**OPEN, manifest=LONG), "too long"),
        (lambda api: api.evaluate.owod(**{**OPEN, "truth": ""}), "working folder"),
        (lambda api: api.evaluate.owod(**{**OPEN, "truth": LONG}), "too long"),
        (lambda api: api.evaluate.voc(truth=TRUTH, detections="a\0b"), "value of detections"),
        (lambda api: api.evaluate.voc(truth=TRUTH, detections=FOUND, image_set="\ud800"), "value of image_set"),
        (lambda api: api.evaluate.imagenet(scores={}), "value of scores"),
        (lambda api: api.evaluate.elephant(**PARTS, recalls=()), "value of recalls"),
        (lambda api: api.evaluate.elephant(**PARTS, bootstrap=-1), "at least 0"),
        (lambda api: api.evaluate.elephant(**PARTS, bootstrap=True), "found: bool True"),
        (lambda api: api.evaluate.elephant(**PARTS, seed=2**64), "value of seed"),
        (lambda api: api.evaluate.elephant(**PARTS, seed=np.int64(-1)), "value of seed"),
        (lambda api: api.evaluate.voc(TRUTH, FOUND), "too many positional arguments"),
        (lambda api: api.evaluate.voc(truth=TRUTH, detections=FOUND, variant="voc"), "found: variant"),
        (lambda api: api.evaluate.voc(truth=TRUTH), "help(curation.evaluate.voc)"),
        (lambda api: api.load(1), "help(curation.load)"),
        (lambda api: api.load(PACKAGED).ids(1), "help(curation.Manifest.ids)"),
        (lambda api: api.evaluate.voc(truth=TRUTH, detections=FOUND)[1], "help(curation.evaluation.result.Result."),
        (lambda api: api.open_source("coco", TRUTH, bad_box="drop"), "help(curation.open_source)"),
        (lambda api: api.identify(None), "value of files"),
        (lambda api: api.identify(""), "working folder"),
        (lambda api: api.load(""), "working folder"),
        (lambda api: api.load(LONG), "too long"),
        (lambda api: api.open_source("coco", ""), "working folder"),
        (lambda api: api.build("owod", parameters={"val_size": 3}, val_size=4), "val_size is given twice"),
        (lambda api: api.build("imagenet", parameters={"wordnet": "nltk"}, wordnet="nltk"), "wordnet is given twice"),
        (lambda api: api.build("owod", val_size=None), "value of val_size"),
        (lambda api: api.build(api.load(PACKAGED)), "already complete"),
        (lambda api: api.audit(PACKAGED, exemplars=0), "at least 1"),
        (lambda api: api.leaks(PACKAGED, corpus=".", photos=".", workers=0), "value of workers"),
        (lambda api: api.leaks(PACKAGED, corpus=".", photos=".", radius=100), "value of radius"),
        (lambda api: api.publish([], "org/name"), "not empty"),
        (lambda api: api.publish([PACKAGED, PACKAGED], "org/name"), "none twice"),
        (lambda api: api.verify(PACKAGED, {1: "coco.json"}), "mapping of names"),
    ],
)
def test_a_value_that_is_refused(call: Any, says: str) -> None:
    with pytest.raises(curation.CurationError, match=re.escape(says)):
        call(curation)


def test_what_the_machine_refuses_is_an_error_of_the_tree() -> None:
    @checked
    def raising(error: Any) -> None:
        raise error

    for error in (OSError(36, "File name too long", "x"), MemoryError(), RecursionError(), "\ud800".encode):
        with pytest.raises(curation.CurationError):
            raising(error) if not callable(error) else checked(error_of)(error)


def error_of(call: Any) -> None:
    call()


def test_whatever_can_be_saved_takes_a_text_for_a_path() -> None:
    # `pkgutil.walk_packages` would import the plugin, and FiftyOne with it.
    package = Path(curation.__file__).parent
    modules = [
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in sorted(package.rglob("*.py"))
        if "plugin" not in path.parts and not path.name.startswith("__")
    ]
    found = {
        f"{module}.{name}": kind.save
        for module in modules
        for name, kind in vars(importlib.import_module(module)).items()
        if isinstance(kind, type) and kind.__module__ == module and "save" in vars(kind)
    }
    assert len(found) >= 9
    for name, save in found.items():
        path = [*inspect.signature(save).parameters.values()][1]
        assert set(str(path.annotation).split(" | ")) == {"Path", "str"}, name
        with pytest.raises(UsageError, match=path.name):
            save(None, 7)
