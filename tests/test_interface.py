"""The public interface: every promised name is there, loaded late, documented by an example that runs."""

import doctest
import importlib
import inspect
import json
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import curation
from curation.benchmarks.calls import _variant_kind, _with_variants
from curation.benchmarks.registry import evaluation_of, protocols
from curation.cli.signature import parameter_texts
from curation.core.arguments import checked
from curation.core.errors import UsageError
from curation.evaluation.inputs import Reading
from curation.manifest.locate import find_manifest
from tests.small_world import write_small_world

FUNCTIONS = [name for name in curation.__all__ if name[0].islower() and name != "evaluate"]
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


@pytest.mark.parametrize("name", curation.__all__)
def test_every_promised_name_is_there(name: str) -> None:
    assert getattr(curation, name) is not None
    assert name in dir(curation)


def test_the_page_lists_the_names_with_the_first_lines_of_their_docstrings() -> None:
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `curation\.(\w+)` \| (.*) \|$", page, re.MULTILINE)
    assert rows == listed()


def test_a_public_name_is_found_by_what_is_nearly_it() -> None:
    assert dir(curation) == sorted(curation.__all__)
    with pytest.raises(AttributeError, match=r"did you mean evaluate\?"):
        _ = curation.evaluat


def test_every_benchmark_is_a_function_whose_arguments_are_all_named() -> None:
    assert tuple(dir(curation.evaluate)) == tuple(sorted(protocols()))
    for name in protocols():
        function = getattr(curation.evaluate, name)
        assert name in (inspect.getdoc(curation.evaluate) or "")
        signature = inspect.signature(function)
        told = set(parameter_texts(function))
        assert {one for one in signature.parameters if one != "variants"} <= told, name
        assert not {"reading", "policy", "options"} & signature.parameters.keys()
    assert "variants" not in inspect.signature(curation.evaluate.voc).parameters
    assert {"bad_boxes", "recalls", "variants"} <= inspect.signature(curation.evaluate.elephant).parameters.keys()
    assert curation.evaluate.voc(truth=TRUTH, detections=FOUND)["mAP11"] == 100
    assert "exemplars" in inspect.signature(curation.audit).parameters
    with pytest.raises(AttributeError, match=r"did you mean owod\?"):
        _ = curation.evaluate.owodd
    with pytest.raises(UsageError, match="did you mean truth"):
        curation.evaluate.voc(truths=1)


def test_an_evaluation_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(curation.evaluate.voc)) is curation.evaluate.voc  # noqa: S301


def test_no_representation_is_longer_than_a_screen() -> None:
    other, small = (curation.load(name) for name in ("owod/reowod", "elephant/val2017"))
    for made in (curation.diff(other, small), curation.diff(small, other), curation.audit):
        assert len(repr(made)) < 80 * 40


def listed() -> list[tuple[str, str]]:
    """Return the rows of the table in docs/python.md."""
    names = [name for name in curation.__all__ if name != "__version__"]
    lines = [(inspect.getdoc(implementation(name)) or "").partition("\n")[0] for name in names]
    return [(name, line.replace("``", "`")) for name, line in zip(names, lines, strict=True)]


def test_another_name_is_none() -> None:
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = curation.frobnicate  # type: ignore[attr-defined]


def implementation(name: str) -> Any:
    return getattr(curation, name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_every_function_runs(name: str) -> None:
    function = implementation(name)
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(function, name, globs={"curation": curation})
    assert found.examples or name == "pull"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(found).failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_explained(name: str) -> None:
    function = implementation(name)
    told = parameter_texts(function)
    named = {one.lstrip("*") for one in told}
    missing = [one for one in inspect.signature(function).parameters if one not in named]
    assert not missing or name == "diff"


def test_the_example_of_the_evaluations_runs() -> None:
    assert doctest.testmod(curation.evaluate).attempted > 0
    assert doctest.testmod(curation.evaluate).failed == 0


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


@pytest.mark.parametrize(
    ("name", "variants", "value"),
    [
        ("owod", ("clean", "ore"), {"variant": ("clean", "ore")}),
        ("owod", "ore", {"variant": "ore"}),
        ("elephant", ("paper", "official"), {"variant": "all"}),
        ("imagenet", ["exact"], {"variant": "exact"}),
        ("imagenet", ("exact", "paper"), {"variant": ("exact", "paper")}),
    ],
)
def test_variants_are_the_option_that_chooses_them(name: str, variants: Any, value: dict[str, Any]) -> None:
    kind = _variant_kind(evaluation_of(name))
    assert _with_variants(kind, {"variants": variants, "seed": 1}, name) == {"seed": 1, **value}


@pytest.mark.parametrize(
    ("name", "variants"), [("owod", "cleen"), ("owod", ()), ("imagenet", "exakt"), ("voc", "clean")]
)
def test_variants_that_there_are_not(name: str, variants: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"variant|no input of this name"):
        getattr(curation.evaluate, name)(truth=tmp_path, detections=tmp_path, scores=tmp_path, variants=variants)


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
        ({"truth": TRUTH, "detections": FOUND, "variants": "x"}, "this value of variant"),
        ({"truth": FOUND, "detections": TRUTH}, "are they swapped?"),
        ({"truth": {"t1": FOUND}, "detections": {"t1": TRUTH}}, "are they swapped?"),
        ({"truth": pd.DataFrame(FOUND), "detections": FOUND}, "its rows have scores, as detections do"),
        (
            {"truth": TRUTH, "detections": FOUND, "reading": Reading(), "bad_boxes": "drop"},
            "reading=Reading(bad_boxes=...)",
        ),
        ({"truth": TRUTH, "detections": FOUND, "variants": "ore", "variant": "clean"}, "say the same"),
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


def test_arguments_by_place_are_told_their_names() -> None:
    with pytest.raises(UsageError, match=r"try: name the arguments: truth=\.\.\., detections=\.\.\.$"):
        curation.evaluate.coco("truth.json", "found.json")


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


def test_a_result_is_saved_where_a_text_says(tmp_path: Path) -> None:
    result = curation.evaluate.voc(truth=TRUTH, detections=FOUND)
    assert result.save(str(tmp_path / "scores"))[-1] == tmp_path / "scores" / "results.json"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(curation.CurationError, match="Results go into a folder"):
        result.save(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_sources_without_names_and_boxes_that_are_no_numbers() -> None:
    for given in (["train.json"], "train.json", 3):
        with pytest.raises(curation.CurationError, match=r"(?s)this value of sources.*a mapping of names"):
            curation.verify("elephant/val2017", given)  # type: ignore[arg-type]
    row = {"image_id": 1, "category": "owl", "x": "left", "y": 1, "w": 2, "h": 3}
    with pytest.raises(curation.CurationError, match=r"bbox\[0\]: Expected float, got str"):
        curation.open_source("owls", pd.DataFrame([row]))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda api, made: api.leaderboard(5), "value of path"),
        (lambda api, made: api.pull(None), "lacks|missing"),
        (lambda api, made: api.publish(3, "org/name"), "value of manifests"),
        (lambda api, made: api.load(7), "value of target"),
        (lambda api, made: api.load(), "missing a required argument: 'target'"),
        (lambda api, made: api.open_source("coco", 5), "Unsupported annotation type"),
        (lambda api, made: api.open_source("coco", TRUTH, bad_boxes="no"), "error, drop"),
        (lambda api, made: api.audit(made, exemplars="x"), "value of exemplars"),
        (lambda api, made: api.audit(made, fail_on="never"), "error, warning"),
        (lambda api, made: api.diff(made, 4), "value of new"),
        (lambda api, made: api.import_lists(None, "lists"), "value of header"),
        (lambda api, made: made.save(1), "value of folder"),
        (lambda api, made: made.ids(2), "value of name"),
        (lambda api, made: made.photos("closed", {"voc2007": 3}), "value of root"),
    ],
)
def test_a_value_of_another_kind_is_told_with_what_is_expected(call: Any, says: str) -> None:
    with pytest.raises(curation.CurationError, match=says) as caught:
        call(curation, curation.load("elephant/val2017"))
    assert caught.value.expected
    assert caught.value.found


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
        (lambda api: api.evaluate.owod(**OPEN, variant=("clean", "all")), "value of variant"),
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
        (lambda api: api.evaluate.voc(truth=TRUTH, detections=FOUND, variants="voc"), "found: variants"),
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


@pytest.mark.parametrize(
    ("name", "given", "plain"),
    [
        ("elephant", {"bootstrap": np.int64(2), "seed": np.uint8(3)}, {"bootstrap": 2, "seed": 3}),
        ("elephant", {"recalls": ["0.5"]}, {"recalls": ("0.5",)}),
        ("elephant", {"recalls": np.array(["0.1", "0.5"])}, {"recalls": ("0.1", "0.5")}),
        ("elephant", {"recalls": np.float64(0.5)}, {"recalls": "0.5"}),
        ("owod", {"variant": np.str_("ore")}, {"variant": "ore"}),
        ("owod", {"variant": ("all",)}, {"variant": "all"}),
        ("owod", {"variant": pd.Series(["clean", "ore"])}, {"variant": ("clean", "ore")}),
        ("owod", {"any_scores": np.bool_(True)}, {"any_scores": True}),
        ("owod", {"reading": Reading(bad_boxes=np.str_("drop"))}, {"bad_boxes": "drop"}),
    ],
)
def test_what_stands_for_a_value_makes_the_same_files(
    name: str, given: dict[str, Any], plain: dict[str, Any], tmp_path: Path, unpainted: None
) -> None:
    inputs = PARTS if name == "elephant" else OPEN
    folders = []
    for number, options in enumerate((given, plain)):
        written = getattr(curation.evaluate, name)(**inputs, **options).save(tmp_path / str(number))
        folders.append({path.name: path.read_bytes() for path in written})
    assert folders[0] == folders[1]
    assert json.loads(folders[0]["results.json"])["measures"]


def test_what_the_machine_refuses_is_an_error_of_the_tree() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    @checked
    def raising(error: Any) -> None:
        raise error

    for error in (OSError(36, "File name too long", "x"), MemoryError(), RecursionError(), "\ud800".encode):
        with pytest.raises(curation.CurationError):
            raising(error) if not callable(error) else checked(error_of)(error)
    with pytest.raises(curation.CurationError, match="value of notes"):
        curation.build("owod", notes=deep)


def test_an_empty_text_names_no_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(curation.load(PACKAGED).save(tmp_path / "made"))
    for ask in (find_manifest, curation.load, curation.verify):
        with pytest.raises(curation.CurationError, match=r"empty|working folder"):
            ask("")
    assert curation.load(".").header.name == PACKAGED


def error_of(call: Any) -> None:
    call()


def test_what_stands_for_a_value() -> None:
    kinds: Any = {"a": 5, "several": "x", "path": "p", "paths": {"n": "p"}, "many": ["a", Path("b")]}
    assert everything(**kinds) == (5, ("x",), Path("p"), {"n": Path("p")}, (Path("a"), Path("b")))
    assert everything(a=1, several={"b", "a"}, path=Path("p"), paths={"n": Path("q")}, many=())[1] == ("a", "b")  # type: ignore[arg-type]


@checked
def everything(
    a: int, several: Sequence[str], path: Path, paths: Mapping[str, Path], many: tuple[Path, ...] = ()
) -> tuple[Any, ...]:
    return a, several, path, paths, many


def test_sources_of_an_export_may_be_anything_that_a_reader_takes(tmp_path: Path) -> None:
    world = write_small_world(tmp_path / "data")
    sources = {"voc2007-test": world.voc_root, "coco": str(world.coco_json)}
    manifest = curation.build("elephant", sources)
    assert curation.export(manifest, "closed", "coco", tmp_path / "closed.json", sources=sources).plan.counts["images"]


def test_whatever_can_be_saved_takes_a_text_for_a_path() -> None:
    found = {
        f"{module.name}.{name}": kind.save
        for module in pkgutil.walk_packages(curation.__path__, "curation.")
        if not module.ispkg and ".plugin" not in module.name and "__main__" not in module.name
        for name, kind in vars(importlib.import_module(module.name)).items()
        if isinstance(kind, type) and kind.__module__ == module.name and "save" in vars(kind)
    }
    assert len(found) >= 9
    for name, save in found.items():
        path = [*inspect.signature(save).parameters.values()][1]
        assert set(str(path.annotation).split(" | ")) == {"Path", "str"}, name
        with pytest.raises(UsageError, match=path.name):
            save(None, 7)
