"""Every public function with any two arguments changed: an error of the tree, or a result that is whole.

The values come from the annotations of the signatures, and from a list of odd ones: what notebooks hold, and what
nobody means. ``CURATION_CALLS`` makes more of them.
"""

import csv
import dataclasses
import importlib
import inspect
import json
import os
import tempfile
import typing
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import curation
from curation.benchmarks.registry import evaluation_of, protocols
from curation.core.arguments import alternatives, annotations_of
from curation.core.errors import CurationError
from curation.evaluation.result import Result
from curation.manifest.manifest import Manifest, packaged_manifests
from tests.unpainted import unpainted
from tests.worlds import coco, elephant, findmeifyoucan, image_ood, imagenet, osod3, ovcoco, owod, voc

CALLS = int(os.environ.get("CURATION_CALLS", "10"))
LONG = "x" * 5000
ODD: list[Callable[[], Any]] = [
    lambda value=value: value  # type: ignore[misc]
    for value in (
        None, "", " ", "0.5", "1,1", "all", "all,all", "a=b", "..", LONG, f"{LONG}/{LONG}", "a\0b", "\ud800", "\udcff",
        "\x1b[31m", "Ünïcode", 0, 1, -1, 3, 2**31, 2**64, -(2**70), True, 0.5, -0.0, 1e308, float("nan"), float("inf"),
        1 + 2j,
        np.int64(1), np.int64(-1), np.uint8(3), np.float32(0.5), np.float64("nan"), np.bool_(True), np.str_("clean"),
        np.array(3), np.array([1, 2]), np.array([0.5]), np.array(["clean", "all"]), np.array([]), np.zeros((2, 2)),
        np.array([None, {}], object), np.datetime64("2020-01-01"), [], (), {}, set(), frozenset({1}), [None], [[]],
        [1, 1], ["a", "a"], ("all",), ("all", "all"), ("clean", "all"), {"clean", "ore"}, [LONG], {1: 2}, {"": ""},
        {"a": None}, {None: "a"}, {"closed": "x"}, {"a": {"b": {}}}, {LONG: LONG}, b"x", bytearray(b"x"), Path(),
        Path("nowhere"), Path(LONG), Path("a\0b"), Path("/dev/null"), object(), object, len, Decimal("0.5"),
        Fraction(1, 3), date(2020, 1, 1), range(3), slice(2), ValueError("x"), pd.NA, pd.NaT, pd.Timestamp(0),
        pd.Series([1, 2]), pd.Series(["clean"]), pd.DataFrame(), pd.DataFrame({"image_id": [1]}), pd.Index(["a"]),
    )
]  # fmt: skip
ODD += [lambda: iter(int, 1)]


def values(kind: Any, paths: Sequence[Path]) -> st.SearchStrategy[Any]:
    """Return values of an annotation, as themselves and as what notebooks have for them."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return values(inner[0], paths) | (st.sampled_from(paths) if Path in inner else st.nothing())
    if len(kinds := alternatives(kind)) > 1:
        return st.one_of([values(one, paths) for one in kinds])
    if origin is Literal:
        return st.sampled_from([*inner, *(np.str_(one) for one in inner)])
    if origin in (tuple, Sequence, Collection):
        each = st.lists(values(inner[0], paths), max_size=3)
        return st.builds(lambda make, held: make(held), st.sampled_from([list, tuple, pd.Series]), each)
    if origin is Mapping:
        names = st.sampled_from(["", "closed", "wilderness", "t2", "test", "coco", "a"])
        return st.dictionaries(names, values(inner[1], paths), max_size=2)
    if isinstance(kind, type) and is_record(kind):
        fields = {name: values(one, paths) for name, one in annotations_of(kind, extras=True).items()}
        return st.fixed_dictionaries({}, optional=fields).map(lambda held: kind(**held))
    if kind is bool:
        return st.sampled_from([True, False, np.bool_(True)])
    if kind is int:
        return st.sampled_from([0, 1, 2, 3, 10, np.int64(2), np.uint16(1)])
    if kind is float:
        return st.sampled_from([0.0, 0.5, 1.0, 2, np.float32(0.5)])
    if kind is Path or os.PathLike in (kind, origin):
        return st.sampled_from([*paths, *map(str, paths)])
    if kind is str:
        return st.sampled_from(["test", "t2", "closed", "coco", "0.5", "0.1,0.5", "1", "elephant/val2017"])
    return st.none()


def is_record(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) and all(one.kw_only for one in dataclasses.fields(kind))


@dataclasses.dataclass(frozen=True)
class Call:
    """A function, arguments that it takes, and the annotation of each that may be changed."""

    function: Callable[..., Any]
    usual: Mapping[str, Any]
    kinds: Mapping[str, Any]
    several: str = ""

    @classmethod
    def of(cls, function: Callable[..., Any], **usual: Any) -> "Call":
        parameters = inspect.signature(function).parameters.values()
        several = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "")
        more = {one.name for one in parameters if one.kind is one.VAR_KEYWORD}
        more |= {"engine"}  # Ray takes longer to start than all calls together.
        kinds = {key: one for key, one in annotations_of(function, extras=True).items() if key not in more}
        return cls(function, usual, kinds, several)

    def made(self, arguments: Mapping[str, Any]) -> Any:
        first = [arguments[self.several]] if self.several in arguments else []
        return self.function(*first, **{key: one for key, one in arguments.items() if key != self.several})


def evaluation(name: str, **usual: Any) -> Call:
    """Return an evaluation whose records of options are given by their fields."""
    kinds: dict[str, Any] = {}
    for key, kind in annotations_of(evaluation_of(name), extras=True).items():
        kinds |= annotations_of(kind, extras=True) if dataclasses.is_dataclass(kind) else {key: kind}
    return Call(lambda **given: getattr(curation.evaluate, name)(**given), usual, kinds)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worlds")


@pytest.fixture(scope="module")
def calls(folder: Path) -> dict[str, Call]:
    """Every public function with arguments that it takes."""

    def world(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name

    def both(made: Mapping[str, Path], *names: str) -> dict[str, Path]:
        return {name: made[name] for name in names}

    found = {}
    made = elephant.files(world("elephant"))
    parts = {one: {part: made[f"{one}_{part}"] for part in ("closed", "wilderness")} for one in ("truth", "detections")}
    found["elephant"] = evaluation("elephant", **parts)
    made = voc.files(world("voc"))
    found["voc"] = evaluation("voc", truth=made["truth"], detections=made["json"])
    pair = ("truth", "detections")
    found["coco"] = evaluation("coco", **both(coco.files(world("coco")), *pair))
    found["ovcoco"] = evaluation("ovcoco", **both(ovcoco.files(world("ovcoco")), *pair))
    for name in ("owod", "rwd", "nuowodb"):
        made = owod.files(world(name), *owod.drawn())
        found[name] = evaluation(name, **both(made, *pair, "classes"))
    made = osod3.files(world("osod3"))
    found["osod3"] = evaluation("osod3", **both(made, *pair, "classes"))
    found["findmeifyoucan"] = evaluation(
        "findmeifyoucan", **both(findmeifyoucan.files(world("findmeifyoucan")), *pair, "id_scores")
    )
    made = imagenet.files(world("imagenet"))
    first = imagenet.CLASSIFIERS[0]
    for name in ("imagenet", "ssb"):
        found[name] = evaluation(name, scores=made[f"{first}_test"], val=made[f"{first}_val"])
    for name in image_ood.SETS:
        found[name] = evaluation(name, scores=image_ood.files(world(name), name)["scores"])
    return found | other_calls(folder) | methods(found["owod"].made(found["owod"].usual))


def other_calls(folder: Path) -> dict[str, Call]:
    """The public functions that do not evaluate; what they write lies below ``out``, which each call has anew."""
    packaged = packaged_manifests() / "elephant/val2017/1.0.0"
    photos = folder / "photos"
    photos.mkdir()
    (photos / "000000000802.jpg").write_bytes(b"no photo")
    rows = folder / "rows.jsonl"
    curation.evaluate.voc(
        truth=folder / "voc/truth_closed.json", detections=folder / "voc/detections_closed.json"
    ).append(rows)
    source = json.loads((folder / "coco/truth.json").read_text(encoding="utf-8"))
    some = "elephant/val2017"
    return {
        "load": Call.of(curation.load, target=some),
        "audit": Call.of(implementation("audit"), target=some, rules="DS"),
        "build": Call.of(curation.build, benchmark="elephant", sources={"coco": source, "voc2007-test": source}),
        "diff": Call.of(curation.diff, old=some, new=packaged),
        "export": Call.of(curation.export, manifest=some, part="closed", form="txt", out=Path("out/ids.txt")),
        "identify": Call.of(implementation("identify"), files=packaged / "ids/closed.txt"),
        "import_lists": Call.of(curation.import_lists, header="owod/reowod-published", lists=photos),
        "inspect": Call.of(curation.inspect, path=folder / "coco/truth.json"),
        "leaderboard": Call.of(curation.leaderboard, path=rows),
        "leaks": Call.of(implementation("leaks"), manifest=some, corpus=photos, photos=photos, workers=1),
        "open_source": Call.of(curation.open_source, dataset="coco", annotations=source),
        "publish": Call.of(curation.publish, manifests=some, repo="org/name", dry_run=Path("out/publication")),
        "pull": Call.of(curation.pull, publication="org/name@1.0.0", out=Path("out/pulled")),
        "split": Call.of(curation.split, source=folder / "coco/truth.json", parts="train=0.7,test=0.3"),
        "verify": Call.of(curation.verify, manifest=some),
    }


def methods(result: Result) -> dict[str, Call]:
    """What a result and a manifest are asked."""
    made = curation.load("elephant/val2017")
    asked = {"ids": "name", "part": "name", "frame": "name"}
    found = {f"manifest.{name}": Call.of(getattr(made, name), **{key: "closed"}) for name, key in asked.items()}
    found["manifest.photos"] = Call.of(made.photos, name="closed", root=Path())
    found["manifest.save"] = Call.of(made.save, folder=Path("out"))
    asked = {"table": "measures", "latex": "measures", "figure": "wilderness", "rows": "mine"}
    found |= {f"result.{name}": Call.of(getattr(result, name), name=one) for name, one in asked.items()}
    found["result.append"] = Call.of(result.append, file=Path("rows.jsonl"), name="mine")
    found["result.save"] = Call.of(result.save, folder=Path("out"))
    return found


def implementation(name: str) -> Any:
    return getattr(importlib.import_module(f"curation.extensions.{name}.run"), name)


BY_FILE = (
    "imagenet200",
    "imagenetx",
    "openmibood_midog",
    "openmibood_oasis3",
    "openmibood_phakir",
    "ovcoco_65_15",
    "v3det",
)
"""Benchmarks without code: their engines are those of ninco and ovcoco."""
EVALUATIONS = tuple(
    name for name in protocols() if evaluation_of(name).__module__.startswith("curation.") and name not in BY_FILE
)
OTHERS = ["load", "audit", "build", "diff", "export", "identify", "import_lists", "inspect", "leaderboard", "leaks",
          "open_source", "publish", "pull", "split", "verify"]  # fmt: skip
METHODS = ["manifest.ids", "manifest.part", "manifest.frame", "manifest.photos", "manifest.save", "result.table",
           "result.latex", "result.figure", "result.rows", "result.append", "result.save"]  # fmt: skip


def test_every_public_function_is_among_them(calls: dict[str, Call]) -> None:
    functions = {one for one in curation.__all__ if one[0].islower() and not one.startswith("_")}
    assert functions - {"evaluate", "methods"} == set(OTHERS)
    assert set(calls) == {*EVALUATIONS, *OTHERS, *METHODS}


@pytest.mark.parametrize("name", [*EVALUATIONS, *OTHERS, *METHODS])
def test_an_error_of_the_tree_or_a_whole_result(
    name: str, calls: dict[str, Call], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = calls[name]
    paths = [*sorted(one for one in folder.rglob("*") if one.is_file())[:40], folder, folder / "absent.json"]
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("CURATION_CACHE", str(folder / "cache"))

    @settings(max_examples=CALLS)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        keys = data.draw(st.lists(st.sampled_from(sorted(call.kinds)), min_size=1, max_size=2, unique=True), "changed")
        odd = st.integers(0, len(ODD) - 1).map(lambda place: ODD[place]())
        changed = {key: data.draw(values(call.kinds[key], paths) | odd, key) for key in keys}
        with tempfile.TemporaryDirectory() as held, warnings.catch_warnings(), monkeypatch.context() as here:
            warnings.simplefilter("ignore")
            here.chdir(held)
            try:
                result = call.made({**call.usual, **changed})
            except CurationError:
                assert not [*Path(held).rglob("*")], "an error left files behind"
            else:
                with unpainted():
                    require_whole(result, Path(held) / "saved")

    if name in EVALUATIONS:
        with unpainted(), tempfile.TemporaryDirectory() as held:
            require_whole(call.made(call.usual), Path(held))
    holds()


def require_whole(result: Any, folder: Path) -> None:
    """Hold a result against what it promises: data that JSON holds, and files that are all there and can be read."""
    if isinstance(result, Result):
        data = result.json_data()
        written = result.save(folder)
        names = [one.name for one in written[:-1]]
        stored = json.loads(written[-1].read_text(encoding="utf-8"))
        assert stored.pop("written", names) == names
        assert stored == json.loads(json.dumps(data, allow_nan=False))
        assert sorted(one for one in folder.iterdir() if not one.name.startswith(".")) == sorted(written)
        for one in written:
            assert one.stat().st_size or one.suffix == ".txt"
            if one.suffix == ".csv":
                head, *rows = csv.reader(one.read_text(encoding="utf-8").splitlines())
                assert all(len(row) == len(head) for row in rows), one
        assert result.numbers() is not None
        assert repr(result)
    elif isinstance(result, Manifest):
        assert curation.load(result.save(folder)).digest == result.digest
    else:
        for name in ("data", "json_data", "as_data"):
            held = getattr(result, name, None)
            if held is not None:
                json.dumps(held() if callable(held) else held, allow_nan=False)
        assert repr(result)
