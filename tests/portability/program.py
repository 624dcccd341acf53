"""The numbers-and-digests program: whole commands on drawn worlds, all that they print and write, as one JSON document.

``python -m tests.portability.program`` prints it; `tests.portability.comparison` says how far two are apart.
"""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
import platform
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curation import __version__
from curation.cli import main
from curation.ilsvrc2012 import ilsvrc2012_classes
from curation.ledger import LEDGER
from tests.docs.pages import ROOT, blocks_of, commands_of
from tests.docs.worlds import (
    class_scores,
    draw_detections,
    lay,
    ood_files,
    shapes_with_tasks,
    voc_and_coco,
    write_json,
    write_lines,
    write_results,
)
from tests.evaluation import osod3_world
from tests.small_world import write_detections

IDENTITY_VERBS = {"build", "import", "apply", "export", "show", "verify", "list", "decisions", "diff"}
"""What these print and write is an identity, or is counted: not a bit of it may differ anywhere."""
SINGLE_VERBS = {"neighbors", "duplicates"}
"""Cosines of float32 vectors: summed in another order, their last digits differ."""
PAGES = (
    "README.md",
    "docs/audit.md",
    "docs/decisions.md",
    "docs/findmeifyoucan.md",
    "docs/hierarchy.md",
    "docs/id_lists.md",
    "docs/leaderboard.md",
    "docs/owod_metrics.md",
    "docs/similarity.md",
)
"""Pages whose printed commands are run, each on its own drawn world."""
PICTURES = {".png", ".svg", ".parquet", ".gz"}
"""Files whose bytes are a library's and never an identity."""
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])")
"""A number with a fraction or an exponent. Whole numbers are counts, and counts are text: they have to be equal."""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the direct dependencies that are installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(one for extra in extras for one in extra)]
    found = {"python": platform.python_version()}
    for requirement in wanted:
        name = re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return dict(sorted(found.items()))


_VERSIONS = versions() | {"curation": __version__}
"""Results say which versions made them; that is no difference between cells."""


@dataclasses.dataclass(frozen=True)
class Output:
    """One file, or what one command printed.

    Attributes
    ----------
    name : str
        World, command and file.
    kind : {"identity", "double", "single"}
        Equal to the byte in every cell; or numbers in float64 or float32.
    sha256, skeleton : str
        Of all of it, and of what is left without its fractions.
    numbers : tuple of float
    """

    name: str
    kind: str
    sha256: str
    skeleton: str
    numbers: tuple[float, ...]


def elephant(folder: Path) -> Iterator[str]:
    """Every variant of the Elephant evaluator, and every export format, of the small world."""
    voc_and_coco(folder)
    voc, coco = "data/VOCdevkit/VOC2007", "data/coco/annotations/instances_train2017.json"
    sources = f"--source voc2007-test={voc} --source coco={coco}"
    yield f"build elephant {sources} --out m"
    for part, name, source in (("closed", "voc2007-test", voc), ("wilderness", "coco", coco)):
        for form in ("coco", "yolo", "voc"):
            out = f"{form}/{part}.json" if form == "coco" else f"{form}/{part}"
            yield f"export m --part {part} --format {form} --source {name}={source} --out {out}"
        write_detections(folder / f"coco/{part}.json", folder / f"{part}-results.json")
    given = " ".join(
        f"--truth {part}=coco/{part}.json --detections {part}={part}-results.json"
        for part in ("closed", "wilderness")
    )
    yield f"evaluate elephant --manifest m {given} --profile all --bootstrap 200 --json"
    yield f"evaluate elephant --manifest m {given} --difficult count --fbeta-formula published --json"
    yield f"evaluate elephant --manifest m {given} --profile official --level-counts float32 --json"
    for dataset in ("voc", "coco"):
        one = "--truth coco/closed.json --detections closed-results.json"
        yield f"evaluate {dataset} {one} --json"
    for weighting in ("counts", "binary", "jaccard", "pmi"):
        yield f"cut {coco} -k 2 --components cut --weighting {weighting} --json"


def open_world(folder: Path) -> Iterator[str]:
    """Every variant of the open-world evaluator on exported views."""
    shapes_with_tasks(folder)
    sources = "--source train=train.json --source test=test.json"
    yield f"build owod --tasks tasks.toml {sources} --set val_size=10 --set exemplars=5 --out m"
    yield f"export m --part *-test --each --format coco {sources} --out views"
    for task in ("t1", "t2", "t3"):
        write_results(folder / f"views/{task}-test.json", folder / f"{task}.json")
        one = f"--truth views/{task}-test.json --detections {task}.json --task {task}"
        yield f"evaluate owod --manifest m {one} --profile all --json"


def rectified(folder: Path) -> Iterator[str]:
    """Every variant and engine of the evaluator of Rectifying Open-Set Object Detection, on its worked example."""
    osod3_world.write_world(folder)
    given = "--truth gt.json --detections detections.json --classes classes.json"
    for engine in ("pycocotools", "faster"):
        yield f"evaluate osod3 {given} --profile all --engine {engine} --json"
        yield f"evaluate osod3 {given} --profile all --outside ignore --engine {engine} --json"


def out_of_distribution(folder: Path) -> Iterator[str]:
    """Every post-hoc score, and every variant of FindMeIfYouCan's evaluator."""
    ood_files(folder)
    yield "scores --test ood.npz --train train.npz --layer layer.npz --out code.json"
    yield "scores --test ood.npz --train train.npz --layer layer.npz --class-weights --out plain.csv"
    given = "--truth split.json --detections split-results.json --id-scores id-results.json"
    for profile in ("paper", "official"):
        yield f"evaluate findmeifyoucan {given} --profile {profile} --bootstrap 100 --json"
    yield f"evaluate findmeifyoucan {given} --threshold quantile --fpr nearest --json"


def imagenet(folder: Path) -> Iterator[str]:
    """The three protocols from counts of photos, and every measure of a classifier."""
    wnids = list(ilsvrc2012_classes())
    names = [f"ILSVRC2012_val_{place:08d}.JPEG" for place in range(1, 2001)]
    write_lines(folder / "val.txt", [f"{name} {place % 1000}" for place, name in enumerate(names)])
    write_json(folder / "counts.json", dict.fromkeys(wnids, 5))
    for protocol in ("p1", "p2", "p3"):
        sources = "--source imagenet-train=counts.json --source imagenet-val=val.txt"
        yield f"build imagenet --set protocol={protocol} {sources} --out {protocol}"
    class_scores(folder)
    yield "evaluate imagenet --scores S=s.npz --scores BG=bg.npz --background BG=last --grid all --bootstrap 500 --json"
    yield "evaluate imagenet --scores test.npy --labels gt.npy --kind logits --json"


def kinship(folder: Path) -> Iterator[str]:
    """Similarities of two nouns in the built-in tree."""
    for pair in ("dog.n.01 cat.n.01", "horse.n.01 sofa.n.01", "n02084071 n02121620"):
        yield f"hierarchy similarity {pair} --json"


WORLDS: dict[str, Callable[[Path], Iterator[str]]] = {
    "elephant": elephant,
    "owod": open_world,
    "osod3": rectified,
    "imagenet": imagenet,
    "ood": out_of_distribution,
    "kinship": kinship,
}


def of_page(page: str) -> Callable[[Path], Iterator[str]]:
    """Return the commands that a page prints, on the world that its test draws."""

    def commands(folder: Path) -> Iterator[str]:
        lay(page, folder)
        for block in blocks_of(page):
            for one in commands_of(block) if block.language == "bash" else ():
                draw_detections(one.text, folder)
                yield shlex.join(one.words()[1:])

    return commands


def run(worlds: Sequence[str] | None = None) -> list[Output]:
    """Return the outputs of the worlds named, or of all and the pages."""
    found: list[Output] = []
    draws = {**WORLDS, **{page: of_page(page) for page in PAGES}}
    for name in draws if worlds is None else worlds:
        # Short and of one length: where a line is broken must not depend on the folder.
        with tempfile.TemporaryDirectory(prefix="w") as folder:
            found += _of_world(name, draws[name], Path(folder).resolve())
    return found


def _of_world(name: str, draw: Callable[[Path], Iterator[str]], root: Path) -> Iterator[Output]:
    os.environ["CURATION_CACHE"] = str(root / "cache")
    folder = root / "world"
    folder.mkdir()
    before = Path.cwd()
    os.chdir(folder)
    try:
        steps = draw(folder)
        for command in steps:
            seen = _stamps(folder)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as said:
                status = _status(shlex.split(command))
            if status == 2:
                raise SystemExit(f"{name}: curation {command}\n{said.getvalue()}")
            verb, stem = command.split()[0], f"{name}: {command}"
            text = f"{printed.getvalue()}exit status {status}\n".replace(str(folder), "WORLD")
            yield _of_text(f"{stem} (printed)", _kind(verb), text.encode())
            for path, stamp in sorted(_stamps(folder).items()):
                # What the ledger says is the digest of files that are compared themselves, and of pictures.
                if seen.get(path) != stamp and path.suffix not in PICTURES and path.name != LEDGER:
                    yield _of_file(f"{stem}: {path.relative_to(folder).as_posix()}", _kind(verb), path)
    finally:
        os.chdir(before)


def _status(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as stop:  # argparse leaves in this way
        return stop.code if isinstance(stop.code, int) else 2


def _kind(verb: str) -> str:
    return "identity" if verb in IDENTITY_VERBS else "single" if verb in SINGLE_VERBS else "double"


def _stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            stat = path.stat()
            found[path] = (stat.st_size, stat.st_mtime_ns)
    return found


def _of_file(name: str, kind: str, path: Path) -> Output:
    if path.suffix == ".npy":
        values = np.load(path, allow_pickle=False)
        if values.dtype.kind == "f":
            head = f"{values.dtype} {values.shape}".encode()
            kind = "single" if values.dtype == np.float32 else kind
            body = hashlib.sha256(path.read_bytes()).hexdigest()
            return Output(name, kind, body, _sha256(head), tuple(map(float, values.ravel())))
    return _of_text(name, kind, path.read_bytes())


def _of_text(name: str, kind: str, content: bytes) -> Output:
    text = content.decode("utf-8", "surrogateescape")
    for package, version in _VERSIONS.items():
        text = text.replace(f'"{package}": "{version}"', f'"{package}": "VERSION"')
    content = text.encode("utf-8", "surrogateescape")
    skeleton = NUMBER.sub("#", text).encode("utf-8", "surrogateescape")
    numbers = tuple(map(float, NUMBER.findall(text)))
    return Output(name, kind, _sha256(content), _sha256(skeleton), numbers)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def kernels() -> dict[str, str]:
    """Return what the libraries really compute with here: the environment only asks for it."""
    from numpy._core import _multiarray_umath as umath
    from threadpoolctl import threadpool_info

    found = {
        "NumPy": " ".join(one for one in umath.__cpu_dispatch__ if umath.__cpu_features__[one]) or "baseline"
    }
    for one in threadpool_info():
        if one["internal_api"] == "openblas":
            found["OpenBLAS"] = f"{one['architecture']}, {one['num_threads']} threads"
    if importlib.util.find_spec("torch"):
        import torch

        found["torch"] = f"{torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"
    return found


def document(outputs: Sequence[Output]) -> dict[str, Any]:
    """Return what the program prints."""
    return {
        "versions": _VERSIONS,
        "kernels": kernels(),
        "outputs": [dataclasses.asdict(one) for one in outputs],
    }


if __name__ == "__main__":
    # Worlds are drawn by commands too, and those print.
    with contextlib.redirect_stdout(io.StringIO()):
        made = document(run(sys.argv[1:] or None))
    json.dump(made, sys.stdout, indent=0)
