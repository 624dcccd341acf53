"""Roles share no image: what is planted is refused or told by every command, and what only looks alike is not accused.

The worlds know which images they share: the right answer is theirs, not the package's.
"""

import io
import json
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import curation
from curation.benchmarks.building import read_parameters
from curation.benchmarks.registry import find_benchmark, find_recipe
from curation.benchmarks.roles import require_disjoint
from curation.benchmarks.rules.starting import start_benchmark
from curation.core.canonical import sha256_of_lines
from curation.core.errors import CurationWarning, ProtocolError
from curation.extensions.audit.run import audit
from curation.manifest.built_from import built_from
from curation.manifest.disjoint import Evidence, source_overlaps
from curation.manifest.manifest import Manifest
from curation.sources.opening import open_slots
from curation.sources.source_specs import Reading
from tests.real_files import real_files
from tests.shell import Shell
from tests.sources.test_voc import an_object, document
from tests.sources.test_voc import write as write_voc

Coco = dict[str, Any]
TASKS = """rule = "tasks"
name = "my/own"
parameters = { exemplars = 0 }
[sources]
train = { dataset = "own_train" }
test = { dataset = "own_test" }
[[classes.tasks]]
name = "t1"
classes = ["a"]
[[classes.tasks]]
name = "t2"
classes = ["b"]
"""


def coco(n: int, seed: int, name: Callable[[int], str] = "{:04d}.jpg".format, *, boxes: bool = True) -> Coco:
    """Return COCO content with ids and names from 1, and boxes at random places."""
    rng = random.Random(seed)
    images = [{"id": k, "file_name": name(k), "width": 640, "height": 480} for k in range(1, n + 1)]
    drawn = [(k, number) for k in range(1, n + 1) for number in range(rng.randint(1, 4))] if boxes else []
    annotations = [
        {
            "id": row,
            "image_id": k,
            "category_id": 1 + (k + number) % 2,
            "bbox": [rng.randint(0, 400), rng.randint(0, 300), rng.randint(5, 200), rng.randint(5, 150)],
            "iscrowd": 0,
        }
        for row, (k, number) in enumerate(drawn, start=1)
    ]
    return {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    }


def planted(
    train: Coco, test: Coco, count: int, *, name: bool = True, boxes: Callable[[list[Any]], list[Any]] | None = list
) -> Coco:
    """Return the test content whose first images are the training ones: by name, by boxes, or both."""
    made: Coco = json.loads(json.dumps(test))
    for image, other in zip(made["images"][:count], train["images"], strict=False):
        image["file_name"] = other["file_name"] if name else image["file_name"]
        if boxes is not None:
            own = [one for one in train["annotations"] if one["image_id"] == other["id"]]
            left = [one for one in made["annotations"] if one["image_id"] != image["id"]]
            made["annotations"] = left + [{**one, "image_id": image["id"]} for one in boxes(own)]
    for row, one in enumerate(made["annotations"], start=1):
        one["id"] = row
    return made


def evidence(train: Coco, test: Coco) -> list[tuple[Evidence, bool, int]]:
    """Return what two contents share as train and test: evidence, whether it is proof, and how many images."""
    sources = {
        use: curation.open_source("own", content, part=use) for use, content in (("train", train), ("test", test))
    }
    return [(one.images.evidence, one.proven, len(one)) for one in source_overlaps(sources)]


COPY = "img{}_jpg.rf.{:032x}.jpg"
CASES: dict[str, tuple[Coco, Coco, list[tuple[Evidence, bool, int]]]] = {
    "one file for both": (coco(40, 1), coco(40, 1), [("file", True, 40)]),
    "counters with other boxes": (coco(40, 1), coco(40, 2), []),
    "30 of 50 by name and boxes": (
        coco(50, 1, "x{}.jpg".format),
        planted(coco(50, 1, "x{}.jpg".format), coco(50, 2, "y{}.jpg".format), 30),
        [("record", True, 30)],
    ),
    "one counter with its boxes": (coco(40, 1), planted(coco(40, 1), coco(40, 2), 1), [("record", True, 1)]),
    "labels of one class alone": (
        coco(50, 1, "x{}.jpg".format),
        planted(coco(50, 1, "x{}.jpg".format), coco(50, 2, "y{}.jpg".format), 30, boxes=lambda own: own[:1]),
        [("record", True, 11), ("name", False, 19)],
    ),
    "names without boxes": (coco(9, 1, boxes=False), coco(7, 2, boxes=False), [("name", False, 7)]),
    "a telling name, other boxes": (
        coco(40, 1, "2024-03-07_shore-{}b.jpg".format),
        planted(coco(40, 1, "2024-03-07_shore-{}b.jpg".format), coco(40, 2, "lake-{}b.jpg".format), 6, boxes=None),
        [("name", False, 6)],
    ),
    "boxes under other names": (
        coco(40, 1, "x{}.jpg".format),
        planted(coco(40, 1), coco(40, 2, "y{}.jpg".format), 8, name=False),
        [("boxes", False, 8)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_evidence_is_graded(case: str) -> None:
    train, test, expected = CASES[case]
    assert evidence(train, test) == expected


@pytest.mark.parametrize("box", [[0, 0, 640, 480], [320, 240, 64, 64]])
def test_boxes_that_every_image_has_prove_nothing(box: list[int]) -> None:
    """Labels of whole images, and drawings in the middle: counters then agree in name and boxes, and are no proof."""
    train, test = coco(30, 1, boxes=False), coco(20, 2, boxes=False)
    for content in (train, test):
        content["annotations"] = [
            {"id": image["id"], "image_id": image["id"], "category_id": 1, "bbox": box, "iscrowd": 0}
            for image in content["images"]
        ]
    assert evidence(train, {**test, "info": {}}) == [("name", False, 20)]


def test_a_grid_of_boxes_proves_nothing() -> None:
    """With five records in all, equal names have equal boxes by chance one time in five."""

    def gridded(seed: int, name: str) -> Coco:
        content, rng = coco(50, seed, name.format, boxes=False), random.Random(seed)
        content["annotations"] = [
            {"id": 9 * k + place, "image_id": k, "category_id": 1, "bbox": [40 * place, 10, 20, 20], "iscrowd": 0}
            for k in range(1, 51)
            for place in range(rng.randint(1, 5))
        ]
        return content

    by_chance = evidence(gridded(1, "{:04d}.jpg"), gridded(2, "{:04d}.jpg"))
    assert not any(proven for _, proven, _ in by_chance)
    train = gridded(1, "x{}.jpg")
    assert evidence(train, planted(train, gridded(2, "y{}.jpg"), 30)) == [("name", False, 30)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write(path: Path, content: Coco) -> None:
    write_text(path, json.dumps(content))


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("case", ["one file for both", "30 of 50 by name and boxes"])
def test_init_and_build_refuse_proof_and_name_the_images(folder: Path, shell: Shell, case: str) -> None:
    train, test, ((_, _, count),) = CASES[case]
    write(folder / "train.json", train)
    write(folder / "test.json", test)
    (folder / "tasks.toml").write_text(TASKS)
    given = ("--source", "train=train.json", "--source", "test=test.json")
    for words in (("init", "tasks", *given, "--out", "new.toml"), ("build", "tasks.toml", *given, "--out", "m")):
        told = shell.err(*words)
        assert f"{count} images are in" in told
        assert "try: " in told
        assert train["images"][0]["file_name"] in told
    assert {path.name for path in folder.iterdir()} == {"train.json", "test.json", "tasks.toml"}
    # What the message says works: without the shared images both commands do.
    names = {image["file_name"] for image in train["images"]}
    left = [image for image in test["images"] if image["file_name"] not in names]
    if left:
        ids = {image["id"] for image in left}
        boxes = [one for one in test["annotations"] if one["image_id"] in ids]
        write(folder / "test.json", {**test, "images": left, "annotations": boxes})
        shell.out("init", "tasks", *given, "--out", "new.toml")
        shell.out("build", "tasks.toml", *given, "--out", "m")
        assert "verified" in shell.out("verify", "m")


def planted_folder(folder: Path, layout: str, kind: str) -> dict[str, str]:
    """Write a VOC or YOLO folder of two parts, numbered through, that share three images by some evidence.

    Returns
    -------
    dict of str to str
        ``--source`` without its path, by role.
    """
    rng, names = random.Random(layout), [f"{number:06d}" for number in range(40)]
    train, test = names[:30], names[27 if kind == "id" else 30 :]
    copies = dict(zip(names[30:33], names[:3], strict=True)) if kind in ("bytes", "boxes") else {}
    photos, notes = {name: rng.randbytes(300) for name in names}, {}
    for name in names:
        x, y = rng.randint(1, 300), rng.randint(1, 200)
        if layout == "yolo":
            notes[name] = f"0 {x / 640:.6f} {y / 480:.6f} 0.1 0.1\n1 {y / 480:.6f} {x / 640:.6f} 0.2 0.1\n"
            pixels = np.random.default_rng(int(name)).integers(0, 255, (48, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(buffer := io.BytesIO(), "png")
            photos[name] = buffer.getvalue()
        else:
            # The XML of some tools states the name before the images were renumbered.
            boxes = an_object(xmin=x, ymin=y, xmax=x + 9, ymax=y + 7), an_object(name="cat", xmin=y, xmax=y + x + 9)
            notes[name] = document(*boxes, stem="IMG")
    photos |= {name: photos[other] for name, other in copies.items() if kind == "bytes"}
    notes |= {name: notes[other] for name, other in copies.items()}
    if layout == "yolo":
        for part, listed in (("train", train), ("val", test)):
            write_text(folder / f"{part}.txt", "".join(f"{name}.png\n" for name in listed))
        write_text(folder / "data.yaml", "train: train.txt\nval: val.txt\nnames: [dog, cat]\n")
    else:
        write_voc(folder, {name: notes[name] for name in names}, "\n".join(train), part="trainval")
        write_text(folder / "ImageSets/Main/test.txt", "\n".join(test))
        (folder / "JPEGImages").mkdir()
    for name in names:
        if layout == "yolo":
            write_text(folder / f"{name}.txt", notes[name])
        if layout != "voc without photos":
            (folder / (f"{name}.png" if layout == "yolo" else f"JPEGImages/{name}.jpg")).write_bytes(photos[name])
    return (
        {"train": "train@train", "test": "test@val"}
        if layout == "yolo"
        else {"train": "train@trainval", "test": "test"}
    )


@pytest.mark.parametrize("layout", ["voc", "voc without photos", "yolo"])
@pytest.mark.parametrize("kind", ["nothing", "id", "bytes", "boxes"])
def test_init_and_audit_answer_alike_on_the_parts_of_one_folder(
    folder: Path, shell: Shell, layout: str, kind: str
) -> None:
    """Numbers of one VOC or YOLO folder name its files, whatever the lists are called and the XML states."""
    uses = planted_folder(folder / "root", layout, kind)
    expected = {"nothing": 0, "id": 1, "bytes": 1, "boxes": 0}[kind]
    if (layout, kind) == ("voc without photos", "bytes"):
        expected = 0
    sources = [word for use in uses.values() for word in ("--source", f"{use}=root")]
    by_init = shell.err("init", "tasks", *sources, "--out", "new.toml", status=2 * expected)
    by_audit = shell.out("audit", "root", status=expected)
    assert (
        ("may be in train" in by_init) == ("perhaps share 3 images" in by_audit) == (kind != "nothing" and not expected)
    )
    if not expected:
        return
    assert "3 images are in train and in test" in by_init
    assert (
        ("both hold 3 images" in by_audit or "share 3 images: the same id" in by_audit)
        if kind == "id"
        else ("share 3 images: the same photo" in by_audit)
    )
    first = "000027" if kind == "id" else "000030"
    for told in (by_init, by_audit):
        assert first in told
    parts = ("train of data.yaml", "val of data.yaml") if layout == "yolo" else ("trainval.txt", "Main/test.txt")
    assert all(part in by_init.partition("try: ")[2] for part in parts)
    # The next step works in both commands.
    file = folder / "root" / ("val.txt" if layout == "yolo" else "ImageSets/Main/test.txt")
    removed, listed = file.read_text().split()[:3], file.read_text().split()[3:]
    file.write_text("\n".join(listed) + "\n")
    if (layout, kind) == ("yolo", "bytes"):
        for name in removed:
            (folder / "root" / name).with_suffix(".txt").unlink()
    assert "may be" not in shell.err("init", "tasks", *sources, "--out", "new.toml", "--force", status=0)
    assert "no error and no warning" in shell.out("audit", "root")


def published(header_of: str, lists: dict[str, list[str]]) -> Manifest:
    """Return a manifest of some lists under a header that authors' lists have."""
    draft = find_recipe(header_of)()
    parts = tuple(
        msgspec.structs.replace(part, images=len(lists[part.name]), sha256=sha256_of_lines(lists[part.name]))
        for part in draft.parts
        if part.name in lists
    )
    return Manifest(msgspec.structs.replace(draft, parts=parts), {part.name: tuple(lists[part.name]) for part in parts})


def test_what_authors_published_is_told_and_never_refused() -> None:
    images = [f"coco:{number:012d}" for number in range(40)]
    lists = {"t1-train": images[:30], "t2-train": images[5:35], "t1-val": images[:10], "t1-test": images[35:]}
    theirs = published("owod/m-owodb-published", lists)
    with pytest.warns(CurationWarning, match=r"10 images are in t1-train.* and in t1-val .*1,451 in t2-train"):
        require_disjoint(theirs, {})
    found = curation.verify(theirs)
    assert [(one.outcome, one.subject) for one in found.findings if one.check == "disjoint"] == [
        ("note", "t1-train, t2-train and t1-val")
    ]
    # The same lists under a name that nobody published are a user's.
    own = Manifest(msgspec.structs.replace(theirs.header, name="my/lists"), theirs.lists)
    outcomes = [one.outcome for one in curation.verify(own).findings if one.check == "disjoint"]
    assert outcomes == ["failure"]


@real_files("owod_lists")
def check_what_ore_published(shared: Path) -> None:
    """Validation images in ORE's training lists, as `sort | uniq` of its text files counts them; told on import."""
    folder = shared / "data/owod/published/ore"

    def lines(name: str) -> set[str]:
        return set((folder / name).read_text().split())

    counts = {f"t{n}-train": len(lines("all_task_val.txt") & lines(f"t{n}_train.txt")) for n in (1, 2, 3, 4)}
    assert counts == {"t1-train": 1000, "t2-train": 1451, "t3-train": 1382, "t4-train": 1507}
    assert find_benchmark("owod").shared["owod/m-owodb-published"] == counts
    with pytest.warns(CurationWarning, match=r"3,978 images are in .*1,507 in t4-train"):
        theirs = curation.import_lists("owod/m-owodb-published@1.0.0", folder)
    assert curation.verify(theirs).ok
    for published_by in ("owod/reowod-published@1.0.0", "owod/s-owodb-published@1.0.0"):
        name = "reowod" if "reowod" in published_by else "owdetr"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            curation.import_lists(published_by, shared / "data/owod/published" / name)


def test_folds_groups_and_lists_of_one_stage_share_by_design() -> None:
    images = [f"own:{number}" for number in range(40)]
    theirs = published("owod/m-owodb-published", {"t1-train": images[:20], "t2-train": images[:30]})
    assert not any(one.check == "disjoint" for one in curation.verify(theirs).findings)
    first, second = theirs.header.parts
    folds = (
        msgspec.structs.replace(first, name="fold0-train"),
        msgspec.structs.replace(second, name="fold1-test", role="test"),
    )
    lists = {"fold0-train": tuple(images[:20]), "fold1-test": tuple(images[:30])}
    made = Manifest(msgspec.structs.replace(theirs.header, name="my/folds", parts=folds), lists)
    assert not any(one.check == "disjoint" for one in curation.verify(made).findings)


def test_wilderness_and_closed_images_are_compared() -> None:
    held = curation.load("elephant/val2017")
    lists = {**held.lists, "wilderness": (*held.lists["wilderness"], held.lists["closed"][0])}
    (one,) = (one for one in curation.verify(Manifest(held.header, lists)).findings if one.check == "disjoint")
    assert one.outcome == "failure"
    assert "1 image is in closed and in wilderness" in one.found


def test_photos_tell_two_views_of_a_scene_apart_and_placeholders_accuse_nobody(folder: Path) -> None:
    """Fog and no fog have equal names and boxes; an "image not available" has the same bytes everywhere."""
    train, test = coco(20, 1, "s{}.jpg".format), planted(coco(20, 1, "s{}.jpg".format), coco(20, 2), 20)
    test["info"] = {"view": "fog"}
    for use, content in (("train", train), ("test", test)):
        write(folder / use / "labels.json", content)
        for number, image in enumerate(content["images"]):
            data = random.Random(f"{use}{number}").randbytes(999)
            (folder / use / image["file_name"]).write_bytes(b"not available" if number < 3 else data)
    sources = {use: curation.open_source("own", folder / use / "labels.json", part=use) for use in ("train", "test")}
    assert [one.proven for one in source_overlaps(sources)] == [True]
    paths = {use: folder / use / "labels.json" for use in sources}
    assert not any(one.proven for one in source_overlaps(sources, paths=paths))
    # A photo in the place of another, whose boxes differ, is told and no proof.
    (folder / "test" / "s9.jpg").write_bytes((folder / "train" / "s8.jpg").read_bytes())
    found = {(one.images.evidence, one.proven): one.pairs for one in source_overlaps(sources, paths=paths)}
    assert found["photo", False][-1] == "s8.jpg = s9.jpg"


# One world of one kind, end to end.

NAMES: dict[str, tuple[str, str]] = {
    "counters": ("{:04d}.jpg", "{:04d}.jpg"),
    "folders": ("train/{:06d}.png", "test/{:06d}.png"),
    "prefixed": ("train_{}.jpg", "test_{}.jpg"),
    "windows": ("d\\tr\\frame_{}.jpg", "d\\te\\frame_{}.jpg"),
}


@contextmanager
def told() -> Iterator[list[str]]:
    """Collect warnings about images, and refusals of them."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield found
        except ProtocolError as error:
            found.append(error.found or "")
    found += [str(one.message) for one in caught if "images" in str(one.message) or "image " in str(one.message)]


def ruled(folder: Path, paths: dict[str, Path]) -> Manifest:
    """Return the manifest that the rule makes, without the check at its door."""
    (folder / "tasks.toml").write_text(TASKS)
    rule = find_benchmark("tasks")
    values = read_parameters(rule, {"file": str(folder / "tasks.toml")})
    sources = open_slots(paths, rule.slots_for(values), Reading())
    made = rule.make(sources, values)
    slots = [slot for slot in made.slots if slot.name in sources]
    return Manifest(made.header, made.lists, built_from=built_from(paths, slots, Reading()))


def reported(subject: Any) -> list[str]:
    """Return what an audit says of images in two roles, errors and warnings."""
    results = [result for result in audit(subject).results if result.rule.name in ("DS2", "DS4", "PL7")]
    return [one.verdict for result in results for one in result.outcome.findings if one.verdict in ("fail", "warn")]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**16),
    n_train=st.integers(12, 40),
    n_test=st.integers(8, 30),
    names=st.sampled_from(sorted(NAMES)),
    kind=st.sampled_from(["nothing", "file", "path", "bytes", "boxes", "id"]),
    count=st.integers(1, 6),
)
def test_any_overlap_of_two_roles_is_refused_or_told_by_every_command(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n_train: int, n_test: int, names: str, kind: str, count: int
) -> None:
    folder = tmp_path_factory.mktemp("roles")
    train, test = (coco(size, 2 * seed + side, NAMES[names][side].format) for side, size in ((0, n_train), (1, n_test)))
    if kind == "file":
        test = train
    if kind in ("path", "boxes"):
        count = max(count, 3)
        test = planted(train, test, count, name=kind == "path")
    paths = {use: folder / use / "annotations.json" for use in ("train", "test")}
    for use, content in (("train", train), ("test", test)):
        write(paths[use], content)
    if kind == "bytes":
        rng = random.Random(seed)
        photos = [
            paths[use].parent / one["file_name"].replace("\\", "/")
            for use, content in (("train", train), ("test", test))
            for one in content["images"]
        ]
        for photo in photos:
            photo.parent.mkdir(parents=True, exist_ok=True)
            photo.write_bytes(rng.randbytes(rng.randint(5000, 5010)))
        for number in range(count):
            photos[n_train + number].write_bytes(photos[number].read_bytes())

    made = ruled(folder, paths)
    if kind == "id":
        # Somebody's list has training images among those of the test.
        lists = {
            name: (*ids, *made.lists["t1-train"][:count]) if "test" in name else ids for name, ids in made.lists.items()
        }
        parts = tuple(
            msgspec.structs.replace(part, images=len(lists[part.name]), sha256=sha256_of_lines(lists[part.name]))
            for part in made.header.parts
        )
        made = Manifest(msgspec.structs.replace(made.header, parts=parts), lists, built_from=made.built_from)
    with told() as by_init:
        start_benchmark("tasks", source=paths, n_tasks=2)
    with told() as by_build:
        curation.build(folder / "tasks.toml", paths)
    by_verify = [one.found for one in curation.verify(made).findings if one.check == "disjoint"]
    by_audit = reported(made)
    spoken = {"init": by_init, "build": by_build, "verify": by_verify, "audit": by_audit}
    if kind == "nothing":
        assert spoken == {command: [] for command in spoken}
    elif kind == "id":
        assert by_verify
        assert "fail" in by_audit
    else:
        assert all(spoken.values()), spoken
    if kind in ("file", "path"):
        assert "fail" in by_audit
        assert not curation.verify(made).ok
        assert "are in" in by_init[0]
    if kind != "id":
        # The same data as files, the photos beside them.
        (folder / "tasks.toml").unlink()
        by_folder = reported(folder)
        assert bool(by_folder) == (kind != "nothing"), by_folder
        assert ("fail" in by_folder) == ("fail" in by_audit), by_folder


def test_an_audit_of_a_manifest_finds_the_groups_that_one_of_the_files_finds(folder: Path) -> None:
    """Subjects and source photos are told by file names, which a manifest's sources state as the files do."""
    copies = (lambda k: COPY.format(k, k), lambda k: COPY.format(k, 99 + k))
    slices = ("patient{:03d}_first.png".format, "patient{:03d}_other.png".format)
    for names in (copies, slices):
        train, test = coco(40, 1, names[0]), coco(20, 2, names[1])
        paths = {use: folder / "lists" / f"{use}.json" for use in ("train", "test")}
        for use, content in (("train", train), ("test", test)):
            write(paths[use], content)
        assert "warn" in reported(folder / "lists")
        assert "warn" in reported(ruled(folder, paths))
