"""Benchmarks without a module: what their files state, on drawn sources and on the published files."""

import csv
import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.benchmark import benchmark_facts
from curation.benchmarks.building import build, complete, import_lists
from curation.benchmarks.published import classes_in_roles
from curation.benchmarks.registry import evaluation, find_recipe
from curation.cli import main
from curation.core.errors import DigestMismatchError, ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.extensions.image_ood.evaluation import sets_of
from curation.extensions.image_ood.measures import OodRules, numbers_of
from curation.manifest.header import ClassEntry
from curation.manifest.importing import LISTS, pin_lists
from curation.manifest.locate import load_manifest
from curation.signals.hierarchy.hierarchy import parents
from curation.signals.hierarchy.related_classes import class_kin
from curation.signals.hierarchy.wordnet import imagenet_tree
from curation.sources.coco import read_coco
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.opening import open_slots
from curation.sources.published_list import read_published
from curation.sources.source import Source
from curation.sources.source_specs import Reading
from tests.real_files import provided, real_files
from tests.worlds.coco_file import coco_content, write_json

WNIDS = ilsvrc2012_classes()
MIBOOD = ("midog", "phakir", "oasis3")
COCO = {name: number for number, name, _ in COCO_CATEGORIES}


def facts(name: str) -> dict[str, Any]:
    return benchmark_facts(f"curation.extensions.benchmarks.{name}")


def classes(name: str, key: str) -> tuple[ClassEntry, ...]:
    return classes_in_roles(facts(name)["classes"][key])


def roles(entries: tuple[ClassEntry, ...]) -> dict[str, int]:
    return dict(Counter(entry.role for entry in entries))


def names_in(entries: tuple[ClassEntry, ...], role: str) -> list[str]:
    return [entry.name for entry in entries if entry.role == role]


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("imagenetx", "imagenet", {"known": 500, "unknown": 500}),
        ("imagenetx", "fmow", {"known": 31, "unknown": 31}),
        ("imagenetx", "iwildcam", {"known": 91, "unknown": 91}),
        ("imagenet200", "imagenet200", {"known": 200}),
        ("ovlvis", "lvis", {"known": 866, "unknown": 337}),
        ("v3det", "v3det", {"known": 6709, "unknown": 6495}),
        ("ovcoco_65_15", "coco", {"known": 65, "unknown": 15}),
        ("openmibood_midog", "midog", {"known": 3}),
        ("openmibood_phakir", "phakir", {"known": 7}),
        ("openmibood_oasis3", "oasis3", {"known": 2}),
    ],
)
def test_the_classes_of_each_file(name: str, key: str, expected: dict[str, int]) -> None:
    entries = classes(name, key)
    assert roles(entries) == expected
    assert len({entry.name for entry in entries}) == len(entries)


def test_detectors_name_both_base_and_novel_classes_by_the_numbers_of_the_data_set() -> None:
    assert {entry.name: entry.index for entry in classes("ovcoco_65_15", "coco")} == COCO
    assert [entry.index for entry in classes("ovlvis", "lvis")] == list(range(1, 1204))
    assert [(entry.name, entry.index) for entry in classes("v3det", "v3det")] == [(str(n), n) for n in range(1, 13_205)]
    # A classifier counts its classes from 0, and has no number for the others.
    indices = [entry.index for entry in classes("imagenetx", "imagenet")]
    assert indices == [*range(500), *[-1] * 500]


def test_images_are_selected_by_the_roles_of_the_classes_that_they_show(tmp_path: Path) -> None:
    """ImageNet-X: 0, 2, 4 and 5 are ID, 1, 3 and 6 OOD; labels of ImageNet-V2 and -C name classes, folders of -R do."""
    files = {
        "imagenet-val": [f"ILSVRC2012_val_{n:08}.JPEG {n}" for n in range(6)],
        "imagenet_v2": ["imagenet_v2/1/aa.jpeg 1", "imagenet_v2/2/bb.jpeg 2"],
        "imagenet_c": [f"imagenet_c/fog/3/ILSVRC2012_val_{n:08}.JPEG {n}" for n in (4, 1)],
        "imagenet_r": [f"imagenet_r/{WNIDS[6]}/art_0.jpg 6", f"imagenet_r/{WNIDS[4]}/art_0.jpg 4"],
    }  # fmt: skip
    for name, lines in files.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    sources = {name: tmp_path / f"{name}.txt" for name in files}
    made = build("imagenetx", sources)
    ids = {name: [one.partition(":")[2] for one in made.ids(name)] for name in made.parts}
    val = "ILSVRC2012_val_{:08}".format
    assert (ids["id"], ids["ood"]) == ([val(n) for n in (0, 2, 4, 5)], [val(n) for n in (1, 3)])
    assert (ids["id_v2"], ids["ood_v2"]) == (["bb"], ["aa"])
    assert (ids["id_c"], ids["ood_c"]) == ([f"fog/3/{val(4)}"], [f"fog/3/{val(1)}"])
    assert (ids["id_r"], ids["ood_r"]) == ([f"{WNIDS[4]}/art_0"], [f"{WNIDS[6]}/art_0"])
    assert len(ids["ood_fs"]) == 2 + 3
    assert "train" not in made.parts
    assert all(figure.explanation == "the source is another set of images" for figure in made.header.figures)
    # Parts are those of the sources at hand.
    assert build("imagenetx", {"imagenet-val": sources["imagenet-val"]}).parts == ("id", "ood")
    with pytest.raises(ProtocolError, match="No source is given"):
        build("imagenetx", {})
    (tmp_path / "fmow.csv").write_text("image,class\na.png,0\nb.png,2\n")
    assert build("imagenetx", {"fmow-id": tmp_path / "fmow.csv"}, problem="fmow").ids("ood") == ("fmow:b",)
    with pytest.raises(ProtocolError, match=r"The sources make no part\n.*imagenet-val"):
        build("imagenetx", {"fmow-id": tmp_path / "fmow.csv"})
    (tmp_path / "fmow.csv").write_text("image,class\na.png,99\n")
    with pytest.raises(ProtocolError, match=r"No image of the sources shows a class[\s\S]*fmow-id: classes 99"):
        build("imagenetx", {"fmow-id": tmp_path / "fmow.csv"}, problem="fmow")


def test_a_header_locks_what_is_selected(tmp_path: Path) -> None:
    (tmp_path / "val.txt").write_text("".join(f"ILSVRC2012_val_{n:08}.JPEG {n}\n" for n in range(6)))
    sources = {"imagenet-val": tmp_path / "val.txt"}
    declared = build("imagenetx", sources, declare=True)
    assert (declared.header.origin, declared.lists) == ("declared", {})
    slots = declared.slots
    completed, missed = complete(declared, open_slots(sources, slots, Reading(), hint=""))
    assert (list(completed.ids("id")), [figure.name for figure in missed if figure.name.endswith(".list")]) == (
        list(build("imagenetx", sources).ids("id")),
        [],
    )


def test_minival_is_the_same_from_annotations_and_from_a_list(tmp_path: Path) -> None:
    names = ["aerosol_can", "air_conditioner"]
    content = coco_content([139, 285, 632], [(139, names[0], (1, 1, 9, 9))], names)
    (tmp_path / "ids.txt").write_text("139\n632\n")
    (tmp_path / "minival.txt").write_text("./images/val2017/000000000139.jpg\n./images/val2017/000000000632.jpg\n")
    made = build("ovlvis", {"val": write_json(tmp_path / "val.json", content), "val2017": tmp_path / "ids.txt"})
    listed = pin_lists(find_recipe("ovlvis/minival-published")(), tmp_path)
    assert made.ids("minival") == listed.ids("minival") == ("coco:000000000139", "coco:000000000632")
    assert made.part("minival").sha256 == listed.part("minival").sha256
    again = build("ovlvis", {"val": tmp_path / "minival.txt", "val2017": tmp_path / "ids.txt"})
    assert again.part("minival").sha256 == listed.part("minival").sha256
    assert (made.part("test").images, made.part("minival").subset_of) == (3, "test")


def v3det(folder: Path, name: str, first: int) -> Path:
    """Write a file of V3Det's form: the classes 1 and 2 have one name."""
    content = coco_content([first, first + 1, first + 2], [], {f"c{n}": n for n in range(1, 13_205)})
    for category in content["categories"]:
        category["name"] = "apple" if category["id"] in (1, 2) else category["name"]
    novel = facts("v3det")["classes"]["v3det"]["unknown"][0]
    content["annotations"] = [
        {"id": k, "image_id": image, "category_id": number, "bbox": [9, 9, 20, 20], "area": 400, "iscrowd": 0}
        for k, (image, number) in enumerate([(first, 1), (first, novel), (first + 1, novel), (first + 2, 2)], 1)
    ]
    return write_json(folder / f"{name}.json", content)


def test_classes_of_v3det_are_numbers_because_names_repeat(tmp_path: Path) -> None:
    val, train = v3det(tmp_path, "val", 1), v3det(tmp_path, "train", 11)
    novel = str(facts("v3det")["classes"]["v3det"]["unknown"][0])
    made = build("v3det", {"val": val, "train": train})
    base = [str(n) for n in (1, 2) if str(n) != novel]
    shown = [image for image, number in (("11", "1"), ("13", "2")) if number in base]
    assert made.ids("train") == tuple(f"v3det:{image}" for image in shown)
    assert made.part("train").boxes.get("unknown", 0) == 0
    assert made.part("test").boxes["unknown"] + made.part("test").boxes["known"] == 4
    with pytest.raises(ProtocolError, match="used for two purposes"):
        build("v3det", {"val": val, "train": val})
    truth = json.loads(val.read_bytes())
    found = [{"image_id": one["image_id"], "category_id": one["category_id"], "bbox": one["bbox"], "score": 0.5}
             for one in truth["annotations"][:2]]  # fmt: skip
    result = evaluation("v3det").evaluate(truth=val, detections=write_json(tmp_path / "d.json", found))
    # Of the novel class one of two objects is found; of the classes 1 and 2, which have one name, only 1.
    assert result["AP_novel"] == pytest.approx(100 * 51 / 101)
    by_class = dict(result.table("average_precision")[["class", "AP"]].dropna().to_numpy().tolist())
    assert by_class["1"] == pytest.approx(100)
    assert by_class["2"] == (0 if novel != "2" else pytest.approx(100 * 51 / 101))


def test_the_whole_of_a_validation_part_is_scored_images_without_objects_too(tmp_path: Path) -> None:
    content = coco_content([1, 2], [(1, "cat", (10, 10, 20, 20)), (1, "dog", (50, 50, 20, 20))], COCO)
    box = {"bbox": [10, 10, 20, 20]}
    found = [{"image_id": 2, "category_id": COCO["cat"], "score": 0.9, **box},
             {"image_id": 1, "category_id": COCO["cat"], "score": 0.5, **box}]  # fmt: skip
    truth, detections = write_json(tmp_path / "t.json", content), write_json(tmp_path / "d.json", found)
    result = evaluation("ovcoco_65_15").evaluate(truth=truth, detections=detections)
    # On image 2, which shows nothing, the better detection is wrong: precision is 1/2 at every recall.
    assert (result["AP50_novel"], result["AP_novel"]) == (pytest.approx(50), pytest.approx(50))
    assert (result["AP50_base"], result["AP50_all"]) == (0, pytest.approx(25))
    assert result.table("lists")["images"].tolist() == [2]
    with_ovcoco = evaluation("ovcoco").evaluate(truth=truth, detections=detections)
    # OV-COCO leaves image 2 out: it shows no class.
    assert with_ovcoco["AP50_novel"] == pytest.approx(50)
    assert with_ovcoco.table("lists")["images"].tolist() == [1]


def test_the_commands_of_the_page_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manifest lies in a folder that is called as the benchmark is."""
    monkeypatch.chdir(tmp_path)
    write_json(tmp_path / "val.json", coco_content([1, 2], [(1, "cat", (10, 10, 20, 20))], COCO))
    found = [{"image_id": 1, "category_id": COCO["cat"], "score": 0.5, "bbox": [10, 10, 20, 20]}]
    write_json(tmp_path / "d.json", found)
    assert main(["build", "ovcoco_65_15", "--source", "val=val.json", "--out", "ovcoco_65_15"]) == 0
    assert main(["evaluate", "ovcoco_65_15", "--truth", "val.json", "--detections", "d.json"]) == 0
    assert re.search(r"AP_novel +% +100\.00", capsys.readouterr().out)


def test_fpr95_at_the_nearest_share_is_not_the_first_that_reaches_it() -> None:
    ids, oods = np.arange(10, 0, -1) / 10, np.array([0.15, 0.05])
    rules = [OodRules(name=fpr, meaning="", fpr=fpr) for fpr in ("FPR95_first", "FPR95_nearest")]  # type: ignore[arg-type]
    # 9 and 10 of 10 ID images are equally near to 0.95: the higher share counts. With 21 it is 20 of 21, not 21.
    assert [round(row["FPR95"] or 0, 4) for row in numbers_of(ids, oods, rules)] == [0.5, 0.5]
    more = np.array([*np.arange(1, 0.04, -0.05), 0.04])
    assert [row["FPR95"] for row in numbers_of(more, np.array([0.045, 0.01]), rules)] == [0.0, 0.5]


@pytest.mark.parametrize("name", MIBOOD)
def test_roles_of_openmibood_are_those_of_the_declaration(name: str) -> None:
    file = facts(f"openmibood_{name}")
    sets = sets_of(file["evaluation"])
    draft = find_recipe(f"openmibood_{name}/published")()
    tested = [part.name for part in draft.parts if part.role == "test"]
    assert {*sets.sets} == {*tested}
    assert sets.id == name
    assert {source.namespace for source in draft.sources if source.name != LISTS} == {"openmibood"}


def own_lists(folder: Path, data: bytes, table: str) -> Path:
    """Write a file of published lists, one list of which it pins the digest."""
    (folder / "test.txt").write_bytes(data)
    file = folder / "own.toml"
    file.write_text(f"""
[paper]
title = "T"
authors = "A"
year = 2026
venue = "V"
bibtex = "@misc{{a}}"

[classes.two]
{table}

[published.own]
name = "lab/own"
title = "Own"
taxonomy = "OSC"
classes = "two"
lists = {{ dataset = "own_lists", part = "all", note = "here" }}
datasets = {{ images = ["openmibood", "own"] }}
pinned = {{ "test.txt" = [{len(data.splitlines())}, "sha256:{hashlib.sha256(data).hexdigest()}"] }}
parts = [{{ name = "test", file = "test.txt", role = "test", sources = ["images"], selection = "All." }}]
""")
    return file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("known = [0, 1]\nunknown = [1]", "the class '1' is listed twice"),
        ("knwon = [0]", "unknown field `knwon`"),
        ("numbered = 'voc'", "Invalid enum value 'voc'"),
        ("numbered = 1000000", "Expected `int` <= 100000"),
    ],
)
def test_a_table_of_classes_that_cannot_be_read_is_told(tmp_path: Path, text: str, said: str) -> None:
    file = own_lists(tmp_path, b"a.png\n", text)
    with pytest.raises(ProtocolError, match=re.escape(said)):
        build(file, {LISTS: tmp_path})
    file.write_text(file.read_text().replace(text, "known = [0]").replace('classes = "two"', 'classes = "tow"'))
    with pytest.raises(ProtocolError, match="Unknown classes"):
        build(file, {LISTS: tmp_path})


def test_lists_that_were_not_at_hand_are_pinned_by_the_file(tmp_path: Path) -> None:
    name = "openmibood_oasis3/published"
    draft = find_recipe(name)()
    files = [file for source in draft.sources if source.name == LISTS for file in source.files]
    assert len(files) == 20
    for file in files:
        (tmp_path / file.name).write_text("oasis3/1/Raw/a.nii.gz 0\n")
    with pytest.raises(
        DigestMismatchError, match=r"This test_oasis3\.txt is not the test_oasis3\.txt of openmibood"
    ) as caught:
        import_lists(name, tmp_path)
    assert re.search(r"expected: sha256:[0-9a-f]{64}, 181 lines\n", str(caught.value))


def test_pinned_lists_are_imported_whatever_their_names_and_ids_keep_all_folders(tmp_path: Path) -> None:
    lines = [f"oasis3/patient {n}/Raw/scan.nii.gz {n % 2}" for n in range(4)]
    data = "".join(f"{line}\n" for line in lines).encode()
    (tmp_path / "renamed.txt").write_bytes(data)
    file = own_lists(tmp_path, data, "known = [0, 1]")
    made = build(file, {LISTS: tmp_path})
    assert made.ids("test")[1] == "openmibood:oasis3/patient_1/Raw/scan"
    (tmp_path / "test.txt").write_bytes(data + b"more/b.png 0\n")
    with pytest.raises(DigestMismatchError):
        build(file, {LISTS: tmp_path})


# What follows holds the declared facts against the published files.


@provided
def atlas(shared: Path) -> Path:
    return shared / "data/atlas2"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


@provided
def ilsvrc(shared: Path) -> dict[str, Path]:
    openood = shared / "data/atlas/openood/imagenet"
    return {
        "imagenet-val": shared / "data/imagenet/val.txt",
        "imagenet-train": shared / "data/imagenet/train_counts.json",
        **{f"imagenet_{key}": openood / f"test_imagenet_{key}.txt" for key in "vrc" if key != "v"},
        "imagenet_v2": openood / "test_imagenet_v2.txt",
    }


@real_files("atlas_lists")
def check_the_class_files_of_imagenet_x_byte_for_byte(atlas: Path) -> None:
    declared = facts("imagenetx")
    for name, (lines, digest) in declared["class_files"].items():
        data = (atlas / "imagenet-x" / name).read_bytes()
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == digest, name
        problem, _, file = name.split("/")
        listed = declared["classes"][problem]["known" if file.startswith("id") else "unknown"]
        assert len(listed) == lines
        made = [WNIDS.index(one) if problem == "imagenet" else one for one in listed]
        text = "\n".join(map(str, made)) + "\n" * (problem != "imagenet")
        assert text.encode() == data, name


@real_files("atlas_lists")
def check_the_rule_of_imagenet_x(atlas: Path) -> None:
    """Halves of the groups of one direct parent, the middle class of an odd one to the sides in turn."""
    tree = imagenet_tree()
    used = {
        row["wnid"]: row["parent_used"] for row in rows_of(atlas / "imagenet-x/parents_of_classes_with_several.csv")
    }
    parent = {wnid: parents(tree, wnid)[0] for wnid in WNIDS}
    assert len(used) == 38
    assert {wnid: parent[wnid] for wnid in used} == used
    groups: dict[str, list[int]] = defaultdict(list)
    for number, wnid in enumerate(WNIDS):
        groups[parent[wnid]].append(number)
    sizes = [len(group) for group in groups.values()]
    assert (len(sizes), sum(size % 2 for size in sizes), sizes.count(1), max(sizes)) == (558, 404, 345, 18)
    sides: tuple[list[int], list[int]] = ([], [])
    turn = 0
    for group in groups.values():
        half = len(group) // 2
        odd = len(group) % 2
        sides[0].extend(group[: half + (odd and turn == 0)])
        sides[1].extend(group[half + (odd and turn == 0) :])
        turn ^= odd
    folder = atlas / "imagenet-x/imagenet/x"
    assert sides == (numbers(folder / "id_data.txt"), numbers(folder / "ood_data.txt"))
    known, unknown = ({WNIDS[number] for number in side} for side in sides)
    assert not class_kin(sorted(unknown), sorted(known)).kin("all")
    with_sibling = [one for one in unknown if any(parent[one] == parent[other] for other in known)]
    assert len(with_sibling) == 326
    assert len(known & {*facts("imagenet200")["classes"]["imagenet200"]["known"]}) == 100


@real_files("atlas_lists")
def check_the_halves_of_wilds_are_a_seed_of_python(atlas: Path) -> None:
    for problem, population, size in (("fmow", range(62), 31), ("iwildcam", range(1, 182), 91)):
        folder = atlas / "imagenet-x" / problem / "x"
        known, unknown = numbers(folder / "id_data.txt"), numbers(folder / "ood_data.txt")
        assert {*known} == {*random.Random(1).sample(population, size)}
        assert {*unknown} == {0, *population} - {*known}


@real_files("atlas_lists")
def check_imagenet_x_and_its_shifted_sets(ilsvrc: dict[str, Path]) -> None:
    made = build("imagenetx", {**ilsvrc})
    assert len(made.header.figures) == 10
    assert all(figure.obtained == figure.paper for figure in made.header.figures)
    pinned = {part.name: part.sha256 for part in load_manifest("imagenetx/imagenet").header.parts}
    assert pinned == {part.name: part.sha256 for part in made.header.parts if part.name != "train"}


@real_files("atlas_lists")
def check_imagenet_200_is_a_filter_of_lists_of_imagenet_1k(shared: Path, atlas: Path, ilsvrc: dict[str, Path]) -> None:
    folder, openood = atlas / "imagenet200", shared / "data/atlas/openood/imagenet"
    listed, others = (folder.joinpath(f"imagenet{n}_classes.txt").read_text().split() for n in (200, 800))
    assert facts("imagenet200")["classes"]["imagenet200"]["known"] == listed == sorted(listed)
    assert sorted([*listed, *others]) == [*WNIDS]
    of_r, of_o = ({line.split("/")[1] for line in (openood / f"test_imagenet_{key}.txt").read_text().splitlines()}
                  for key in "ro")  # fmt: skip
    assert ({*listed}, len(of_o & {*listed})) == (of_r, 36)
    published = import_lists("imagenet200/published", folder)
    assert {part.name: part.images for part in published.header.parts} == {
        "imagenet200": 9_000, "val_imagenet200": 1_000, "openimage_o": 15_869, "val_openimage_o": 1_763
    }  # fmt: skip
    whole = import_lists("openood/imagenet-1k-published", openood)
    for part in ("openimage_o", "val_openimage_o"):
        assert published.ids(part) == whole.ids(part)
    for part, count in (("test", 45), ("val", 5)):
        lines = [line.split() for line in (openood / f"{part}_imagenet.txt").read_text().splitlines()]
        kept = [f"{path.rpartition('/')[2]} {listed.index(WNIDS[int(label)])}" for path, label in lines
                if WNIDS[int(label)] in {*listed}]  # fmt: skip
        assert kept == (folder / f"imagenet200_{part}.txt").read_text().splitlines()
        assert {*Counter(line.split()[1] for line in kept).values()} == {count}
    lists = {f"{part}_imagenet": openood / f"{part}_imagenet.txt" for part in ("test", "val")}
    made = build("imagenet200", {**ilsvrc, **lists})
    assert all(figure.obtained == figure.paper for figure in made.header.figures)
    assert (len(made.header.figures), made.part("train").images) == (6, 258_951)
    for part in ("imagenet200", "val_imagenet200"):
        assert sorted(made.ids(part)) == sorted(published.ids(part))


@provided
def val2017(shared: Path) -> Source:
    return read_coco(shared / "data/coco/instances_val2017_rebuilt.json", dataset="coco", part="val2017")


@real_files("coco")
def check_minival_is_no_coco_val2017(shared: Path, tmp_path: Path, val2017: Source) -> None:
    published = import_lists("ovlvis/minival-published", shared / "data/atlas2/lvis")
    minival, all_ids = list(published.ids("minival")), {*val2017.image_ids.tolist()}
    assert (len(minival), minival == sorted(set(minival)), {*minival} < all_ids) == (4_809, True, True)
    annotated = {*val2017.image_ids[sorted(set(val2017.class_pairs()[0].tolist()))].tolist()}
    absent = all_ids - {*minival}
    assert (len(absent), len(absent - annotated), len(all_ids - annotated)) == (191, 13, 48)
    # From a list of all of LVIS val: those of minival, and others of train2017.
    train2017 = (shared / "data/coco/train2017_ids_in_file_order.txt").read_text().split()[:15_000]
    ids = [one.removeprefix("coco:") for one in minival]
    (tmp_path / "val.txt").write_text("".join(f"{one}\n" for one in [*train2017, *ids]))
    made = build("ovlvis", {"val": tmp_path / "val.txt", "val2017": shared / "data/coco/val2017_ids.txt"})
    assert made.part("test").images == 19_809
    assert made.part("minival").sha256 == published.part("minival").sha256


@real_files("atlas_lists")
def check_base_and_novel_classes_of_lvis(atlas: Path) -> None:
    rows = rows_of(atlas / "lvis/categories.csv")
    entries = classes("ovlvis", "lvis")
    assert [(entry.name, entry.index) for entry in entries] == [(row["name"], int(row["id"])) for row in rows]
    assert Counter(row["frequency"] for row in rows) == {"f": 405, "c": 461, "r": 337}
    assert names_in(entries, "unknown") == [row["name"] for row in rows if row["frequency"] == "r"]
    for letter, least, most in (("r", 1, 10), ("c", 11, 100), ("f", 101, 10**6)):
        assert all(least <= int(row["image_count"]) <= most for row in rows if row["frequency"] == letter)


@real_files("atlas_lists")
def check_base_and_novel_classes_of_v3det(atlas: Path) -> None:
    rows = rows_of(atlas / "v3det/categories.csv")
    entries = classes("v3det", "v3det")
    assert [(entry.name, entry.role) for entry in entries] == [
        (row["id"], "known" if row["role"] == "base" else "unknown") for row in rows
    ]
    of_name: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        of_name[row["name"]].append(row["role"])
    repeated = [listed for listed in of_name.values() if len(listed) > 1]
    assert (len(rows), len(of_name), len({name.casefold() for name in of_name})) == (13_204, 13_166, 13_121)
    assert (len(repeated), sum(map(len, repeated)), sum(len({*listed}) == 2 for listed in repeated)) == (36, 74, 19)
    images = {row["id"]: int(row["image_count"]) for row in rows}
    without = Counter(row["role"] for row in rows if not images[row["id"]])
    assert without == {"base": 79, "novel": 67}
    assert max(images[row["id"]] for row in rows if row["role"] == "novel") == 9_151
    shares = []
    for least, most in ((10, 19), (20, 49), (50, 10**9)):
        of_range = [row["role"] for row in rows if least <= images[row["id"]] <= most]
        shares.append(round(100 * of_range.count("novel") / len(of_range), 1))
    assert shares == [49.7, 49.1, 47.7]


@real_files("coco")
def check_the_65_15_split_on_val2017(shared: Path, val2017: Source) -> None:
    entries = classes("ovcoco_65_15", "coco")
    novel = [line for line in (shared / "data/atlas2/ovcoco-65-15/novel.txt").read_text().split("\n") if line]
    assert facts("ovcoco_65_15")["classes"]["coco"]["unknown"] == novel
    other = facts("ovcoco")["classes"]["coco"]
    assert [len({*novel} & {*other[role]}) for role in ("unknown", "known", "ignored")] == [3, 9, 3]
    made = build("ovcoco_65_15", {"val": shared / "data/coco/instances_val2017_rebuilt.json"})
    assert all(figure.obtained == figure.paper for figure in made.header.figures)
    assert (made.part("novel").images, made.part("novel").boxes["unknown"]) == (1_245, 1_977)
    names = np.array(val2017.categories.names, object)
    objects = val2017.require_objects("A count")
    counts = Counter(names[objects.category].tolist())
    assert sorted((counts[name], name) for name in novel)[:2] == [(9, "toaster"), (11, "hair drier")]
    assert max((counts[name], name) for name in novel) == (303, "suitcase")
    assert len(names_in(entries, "known")) == 65


@real_files("atlas_lists")
def check_novel_classes_of_the_65_15_split_in_train2017(shared: Path) -> None:
    """A lower bound: the table misses classes that another one paints over."""
    novel = {str(COCO[name]) for name in facts("ovcoco_65_15")["classes"]["coco"]["unknown"]}
    shown = [
        {*re.findall(r"\d+", row["category_ids_91"])}
        for row in rows_of(shared / "data/coco/presence_2014_2017.csv")
        if row["split2017"] == "train2017"
    ]
    assert (len(shown), sum(bool(one & novel) for one in shown)) == (117_266, 28_448)


@real_files("atlas_lists")
def check_the_lists_of_openmibood(atlas: Path) -> None:
    rows = rows_of(atlas / "openmibood/lists.csv")
    assert (len(rows), sum(int(row["lines"]) for row in rows)) == (68, 308_883)
    assert sum(row["role_in_the_evaluator"] != "not read" for row in rows) == 37
    assert all(row["lines"] == row["distinct_paths"] for row in rows)
    for name in MIBOOD:
        declared = facts(f"openmibood_{name}")
        [lists] = declared["published"].values()
        mine = [row for row in rows if row["benchmark"] == name]
        assert lists["pinned"] == {row["file"]: [int(row["lines"]), f"sha256:{row['sha256']}"] for row in mine}
        role_of = {part["name"]: row["role_in_the_evaluator"] for part in lists["parts"] for row in mine
                   if part["file"] == row["file"]}  # fmt: skip
        sets = sets_of(declared["evaluation"])
        assert {*sets.shifted} == {part for part, role in role_of.items() if role == "csid"}
        for group in ("near", "far"):
            assert {*sets.groups[group]} == {part for part, role in role_of.items() if role == group}
        figures = {figure["name"]: figure["paper"] for figure in lists["figures"]}
        assert figures == {f"{part['name']}.images": [lists["pinned"][part["file"]][0]] for part in lists["parts"]}


@real_files("atlas_lists")
def check_lists_without_a_figure_are_read_as_ids(atlas: Path) -> None:
    read = read_published(atlas / "lvis/minival.txt").lists[0]
    assert (len(read.stems.split()), read.odd) == (4_809, 0)


def test_every_benchmark_of_this_page_is_a_file_alone() -> None:
    folder = Path(__file__).parents[3] / "curation/extensions/benchmarks"
    for name in (
        "imagenetx",
        "imagenet200",
        "ovlvis",
        "v3det",
        "ovcoco_65_15",
        *(f"openmibood_{one}" for one in MIBOOD),
    ):
        assert (folder / f"{name}.toml").is_file()
        assert not (folder / f"{name}.py").exists()
