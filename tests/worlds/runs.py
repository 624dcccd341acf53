"""How each evaluator is run on its world, and what the references expect of the result, in the shape of the result."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from curation.benchmarks.osod3.evaluation import OUTSIDE
from curation.cli import main
from curation.evaluation.result import schema_text
from tests.worlds import coco, elephant, findmeifyoucan, image_ood, imagenet, osod3, ovcoco, owod, voc
from tests.worlds.expected import committed
from tests.worlds.version_1 import of_json

SCHEMA = json.loads(schema_text())


@dataclass(frozen=True)
class Run:
    """The words after ``curation evaluate``, the name of the world, and what is expected."""

    world: str
    words: tuple[object, ...]
    expected: dict[str, Any]

    @property
    def protocol(self) -> str:
        return str(self.words[0])

    def result(self) -> dict[str, Any]:
        """Return what the command line prints."""
        printed, told = io.StringIO(), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(told):
            status = main(["evaluate", *map(str, self.words), "--json"])
        assert status == 0, told.getvalue()
        result: dict[str, Any] = json.loads(printed.getvalue())
        jsonschema.validate(result, SCHEMA)
        result |= of_json(result)
        assert result["measures"]
        return result


def elephant_run(folder: Path, *options: str) -> Run:
    paths = elephant.files(folder)
    words = ["elephant", "--set", f"fbeta_ratios={','.join(elephant.RATIOS)}"]
    for part in ("closed", "wilderness"):
        words += ["--truth", f"{part}={paths[f'truth_{part}']}"]
        words += ["--detections", f"{part}={paths[f'detections_{part}']}"]
    return Run("elephant", (*words, *options), committed("elephant"))


def owod_run(folder: Path, world: str, profile: str, protocol: str = "owod") -> Run:
    paths = owod.files(folder, *(owod.repeated() if world == "repeated" else owod.drawn()))
    words = [protocol, "--truth", paths["truth"], "--detections", paths["detections"]]
    words += ["--classes", paths["classes"], "--variant", profile]
    if world == "repeated":
        words += ["--lists", paths["images"], "--on-error", "repeats=keep"]
    return Run("owod", tuple(words), committed("owod")[world])


def osod3_run(folder: Path, outside: str) -> Run:
    paths = osod3.files(folder)
    words = ["osod3", "--on-error", f"outside={outside}", "--variant", "all"]
    words += ["--set", f"thetas={','.join(osod3.THETAS)}"]
    for name in ("truth", "detections", "classes"):
        words += [f"--{name}", str(paths[name])]
    return Run("osod3", tuple(words), {"cases": {"test": committed("osod3")[outside]}})


def classifiers_run(folder: Path, protocol: str) -> Run:
    paths = imagenet.files(folder)
    words = [protocol, "--variant", "all", "--background", "background=last"]
    words += ["--set", f"queries={','.join(imagenet.QUERIES)}"]
    for name in imagenet.CLASSIFIERS:
        words += ["--scores", f"{name}={paths[f'{name}_test']}", "--scores", f"val:{name}={paths[f'{name}_val']}"]
    return Run("imagenet", tuple(words), {"classifiers": committed("imagenet")})


def findmeifyoucan_run(folder: Path, profile: str, rule: str) -> Run:
    paths = findmeifyoucan.files(folder)
    words = ["findmeifyoucan", "--variant", profile, "--set", f"threshold={rule}"]
    words += ["--truth", paths["truth"]]
    words += ["--detections", paths["detections"], "--scores", paths["id_scores"]]
    return Run("findmeifyoucan", tuple(words), {"results": {"ood": committed("findmeifyoucan")[rule]}})


def image_ood_run(folder: Path, protocol: str) -> Run:
    words = [protocol, "--scores", str(image_ood.files(folder, protocol)["scores"]), "--variant", "all"]
    expected = {"runs": {"scores": {"published": committed("image_ood")[protocol]}}}
    return Run("image_ood", tuple(words), expected)


def ovcoco_run(folder: Path, *options: str, detections: str = "detections") -> Run:
    paths = ovcoco.files(folder)
    words = ["ovcoco", "--truth", paths["truth"], "--detections", paths[detections]]
    words += ["--set", "setting=all", "--variant", "all", *options]
    return Run("ovcoco", tuple(words), committed("ovcoco"))


def voc_run(folder: Path, form: str) -> Run:
    paths = voc.files(folder)
    words = ("voc", "--truth", paths["truth"], "--detections", paths[form])
    return Run("voc", words, committed("voc"))


def coco_run(folder: Path) -> Run:
    paths = coco.files(folder)
    words = ("coco", "--truth", paths["truth"], "--detections", paths["detections"])
    return Run("coco", words, committed("coco"))


RUNS: dict[str, Callable[[Path], Run]] = {
    "elephant": lambda folder: elephant_run(folder, "--variant", "all"),
    "voc": partial(voc_run, form="json"),
    "coco": coco_run,
    **{f"owod {one}": partial(owod_run, world=one, profile="all") for one in ("once", "repeated")},
    "ovcoco": ovcoco_run,
    **{one: partial(owod_run, world=one, profile="all", protocol=one) for one in ("rwd", "nuowodb")},
    **{f"osod3 {one}": partial(osod3_run, outside=one) for one in OUTSIDE},
    **{f"findmeifyoucan {one}": partial(findmeifyoucan_run, profile="all", rule=one)
       for one in findmeifyoucan.THRESHOLDS},
    **{one: partial(classifiers_run, protocol=one) for one in ("imagenet", "ssb")},
    **{one: partial(image_ood_run, protocol=one) for one in image_ood.SETS},
}  # fmt: skip
"""Each evaluator on each of its worlds, every variant in it."""


def every_run(folder: Path) -> Iterator[Run]:
    """Yield all of `RUNS`, each in a folder of its own."""
    for number, run in enumerate(RUNS.values()):
        (made := folder / str(number)).mkdir()
        yield run(made)
