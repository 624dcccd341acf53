"""Rules of published lists: each on a small drawn folder, and the figures of ten public benchmarks on their files."""

import json
import shutil
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import UsageError
from curation.extensions.audit.lists import ListSet, read_lists
from curation.extensions.audit.report import Report
from curation.extensions.audit.rule import Finding
from curation.extensions.audit.rules import ON_TASKS, PUBLISHED_RULES, RULES
from curation.extensions.audit.run import audit
from tests.real_files import real_files

NUMBERS = [f"{n:012d}" for n in range(1, 2001)]
HEX = [f"{n:032x}" for n in range(400)]


def laid(folder: Path, files: Mapping[str, object]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, list) and path.suffix == ".txt":
            path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def found(report: Report, rule: str, *verdicts: str) -> list[Finding]:
    outcomes = [one.outcome for one in report.results if one.rule.name == rule]
    return [one for outcome in outcomes for one in outcome.findings if not verdicts or one.verdict in verdicts]


def told(folder: Path, rule: str, files: Mapping[str, object], *verdicts: str) -> list[Finding]:
    return found(audit(laid(folder, files)), rule, *verdicts)


def test_a_plain_folder_is_told_nothing_of_these_rules(tmp_path: Path) -> None:
    report = audit(laid(tmp_path, {"train.txt": NUMBERS[:5], "test.txt": NUMBERS[5:9]}))
    assert [one.rule.name for one in report.results] == ["DS1", "DS2", "DS4", "PL7"]
    assert set(report.not_asked) == {rule.name for rule in RULES if rule.name.startswith(ON_TASKS)} | {"DS3", "DS5"}
    assert len(PUBLISHED_RULES) == 15
    assert all(rule.not_shown for rule in PUBLISHED_RULES)


def _coco(names: list[str], ids: list[int]) -> dict[str, object]:
    images = [{"id": number, "file_name": name} for name, number in zip(names, ids, strict=True)]
    annotations = [{"id": n, "image_id": number, "category_id": 1} for n, number in enumerate(ids)]
    return {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "owl"}]}


PHOTOS = [f"IMG_{n}_jpg.rf.{HEX[n]}" for n in range(20)]
OTHERS = [f"IMG_{n}_jpg.rf.{HEX[n + 100]}.jpg" for n in range(20)]
PROMPTED = {"known_classnames.txt": ["starfish", "shark"], "classnames.txt": ["starfish", "shark", "puffin"]}
NUMBERED = _coco(["a1.jpg", "b1.jpg", "c1.jpg"], [1, 2, 3])
LABELLED = [f"c{n % 4}/im{n:04d}.jpg {n % 4}" for n in range(200)]
PATIENTS = [f"patient{n // 2:03d}/{n}.png" for n in range(40)]
AGES = ["file_name,age", *(f"a{n}.jpg,{n % 7}" for n in range(30))]
ID_AND_OOD = {"roles": {"test_id": "id", "far_ood": "ood"}}
Case = tuple[str, str, str, Mapping[str, object]]
SOUND: list[Case] = [
    ("PL1", "pass", "1 count in names", {"voc_coco_500_test.txt": NUMBERS[:500]}),
    ("PL1", "pass", "1 count in names", {"voc_coco_500_test.txt": [*NUMBERS[:500], "000001", "000002"]}),
    ("PL1", "", "", {"coco_2017.txt": NUMBERS[:40]}),
    ("PL1", "", "", {"coco_20_40.txt": NUMBERS[:44]}),
    ("PL1", "", "", {"imagenet200.txt": NUMBERS[:44]}),
    ("PL2", "pass", "", {"w_100.txt": NUMBERS[:100], "w_200.txt": NUMBERS[:200], "w_400.txt": NUMBERS[:400]}),
    ("PL3", "pass", "2 known classes, none of them unknown",
     {"a_seen_classes.json": ["cat", "dog"], "a_unseen_classes.json": ["owl", "fox"]}),
    ("PL4", "pass", "", PROMPTED | {"unknown_classnames_ground_truth.txt": ["puffin"]}),
    ("PL5", "pass", "", {"train.txt": PHOTOS, "train.json": _coco([f"{name}.jpg" for name in PHOTOS], [*range(20)])}),
    ("PL6", "pass", "", {"train.json": NUMBERED}),
    ("PL7", "pass", "none on both sides", {"train.txt": PATIENTS[:30], "test.txt": PATIENTS[30:]}),
    ("PL8", "info", "ID : OOD 4.50 (90 and 20 images)",
     {"test_id.txt": NUMBERS[:90], "far_ood.txt": NUMBERS[100:120]}),
    ("PL9", "pass", "", {"train.txt": LABELLED, "all.txt": LABELLED[:100]}),
    ("PL13", "", "", {"train.txt": LABELLED}),
    ("PL14", "", "", {"one.txt": NUMBERS[:50], "two.txt": NUMBERS[50:90]}),
    ("PL15", "pass", "", {"train.json": NUMBERED}),
    ("PL16", "pass", "", {"one.csv": "\n".join(AGES), "two.csv": "\n".join(AGES[:20])}),
    ("PL17", "pass", "", {"test_id.txt": NUMBERS[:90], "far_ood.txt": NUMBERS[100:120]}),
]  # fmt: skip
FAULTY: list[Case] = [
    ("PL1", "fail", "it names coco, but no id is from there", {"voc_coco_500_test.txt": ["000001", "000002"]}),
    ("PL1", "warn", "100 are missing", {"ood_500.txt": NUMBERS[:400]}),
    ("PL2", "warn", "the lists are not nested: the larger one holds 50 of 100 ids; 50 are missing",
     {"w_100.txt": NUMBERS[:100], "w_200.txt": NUMBERS[50:250], "w_400.txt": NUMBERS[:400]}),
    *(
        ("PL3", verdict, f"share 1 class {how}", {"known_classnames.txt": known, "unknown_classnames.txt": new})
        for known, new, verdict, how in (
            (["cat", "dog"], ["dog"], "fail", "with the same spelling"),
            (["cat", "dog"], ["Dog"], "fail", "in another letter case"),
            (["hot dog"], ["hot-dog"], "warn", "with other spacing or hyphens"),
            (["airplane"], ["aeroplane"], "warn", "under an alias"),
        )
    ),
    ("PL3", "fail", "1 class",
     {"splits.json": {"known_classes": ["cat", "dog"], "unknown_classes": {"Hard": ["owl"], "Easy": ["cat"]}}}),
    ("PL3", "fail", "1 class",
     {"id_wnids.txt": ["n01440764", "n01443537"], "ood_wnids.txt": ["n01443537"]}),
    ("PL3", "fail", "1 class", {"seen.txt": ["cat", "dog"], "unseen.txt": ["dog", "fox"]}),
    ("PL3", "fail", "1 class",
     {"splits.json": {"seed0": {"known": [0, 1], "unknown": [1, 2]}, "seed1": {"known": [1], "unknown": [0]}}}),
    ("PL4", "warn", "1 of 2 names not among the classes of classnames.txt: object",
     PROMPTED | {"unknown_classnames_ground_truth.txt": ["puffin", "object"]}),
    ("PL5", "fail", "they share 0 of 20 names of the list and 20 of the JSON; by the name before .rf. 20 of 20 and 20",
     {"train.txt": PHOTOS, "train.json": _coco(OTHERS, [*range(20)])}),
    ("PL5", "warn", "19 of 19",
     {"train.txt": PHOTOS[:19], "train.json": _coco([f"{name}.jpg" for name in PHOTOS], [*range(20)])}),
    ("PL6", "fail", "3 images with 2 ids: 1 repeated id, on 2 images with 2 of 3 annotations",
     {"train.json": _coco(["a1.jpg", "b1.jpg", "c1.jpg"], [1, 1, 2])}),
    ("PL7", "warn", "1 patient on both sides", {"train.txt": PATIENTS[:31], "test.txt": PATIENTS[31:]}),
    ("PL8", "undecidable", "", {"test_id.txt": NUMBERS[:90], "far_ood.txt": NUMBERS[100:120]}),
    ("PL9", "warn", "both hold 100 images, 2 of them with different labels",
     {"train.txt": LABELLED, "all.txt": LABELLED[:7] + [f"{row[:-1]}9" for row in LABELLED[7:9]] + LABELLED[9:100]}),
    ("PL9", "warn", "", {"a.csv": "image_location,decision\nx/a1.jpg,i\nx/a1.jpg,o\nx/b1.jpg,o\n"}),
    ("PL13", "fail", "", {"train.txt": [*LABELLED, "c0/im0"]}),
    ("PL14", "info", "is contained in", {"one.txt": NUMBERS[:50], "two.txt": NUMBERS[10:40]}),
    ("PL15", "fail", "",
     {"train.json": NUMBERED | {"annotations": [{"id": n, "image_id": 1, "category_id": n} for n in range(1, 9)]}}),
    ("PL16", "warn", "the column age differs for 1 of 19 files",
     {"one.csv": "\n".join(AGES), "two.csv": "\n".join([*AGES[:19], "a18.jpg,70"])}),
    ("PL17", "fail", "", {"test_id.txt": NUMBERS[:90], "far_ood.txt": NUMBERS[80:120]}),
]  # fmt: skip
"""Code, its verdict on a folder (empty: not asked), what it says, and the files of the folder."""


@pytest.mark.parametrize(("code", "verdict", "text", "files"), [*SOUND, *FAULTY])
def test_a_rule_on_its_folder(tmp_path: Path, code: str, verdict: str, text: str, files: Mapping[str, object]) -> None:
    options: Any = ID_AND_OOD if "far_ood.txt" in files and verdict != "undecidable" else {}
    report = audit(laid(tmp_path, files), **options)
    findings = found(report, code, *[verdict][: bool(verdict)])
    assert bool(findings) == bool(verdict), findings
    if findings:
        assert report.verdict(code) == verdict
    assert not findings or any(text in one.text for one in findings), findings


def test_every_rule_has_a_sound_and_a_faulty_folder() -> None:
    # Lists that the index knows are files of others: PL11 is tried on these (test_audit_published).
    codes = {rule.name for rule in PUBLISHED_RULES} - {"PL11"}
    assert {code for code, *_ in SOUND} == {code for code, *_ in FAULTY} == codes


def test_a_guess_is_no_role(tmp_path: Path) -> None:
    files = {
        "known_classnames.txt": ["starfish", "shark"],
        "unknown_classnames.txt": ["Starfish", "solar farm"],
        "unknown_classnames_ground_truth.txt": ["puffin", "object"],
        "classnames.txt": ["starfish", "shark", "puffin"],
    }
    report = audit(laid(tmp_path, files))
    [guess] = found(report, "PL3", "info", "fail", "warn")
    assert (guess.verdict, "not a role" in guess.text) == ("info", True)
    [foreign] = found(report, "PL4", "warn")
    assert foreign.text == "1 of 2 names not among the classes of classnames.txt: object"
    assert report.exit_status == 0


HOSTILE: dict[str, bytes] = {
    "binary.txt": bytes(range(256)) * 1000,
    "long.txt": b"x" * (1 << 20) + b"\n",
    "nan.json": b'{"images": [{"id": NaN}], "annotations": []}',
    "twice.json": b'{"a": ["1.jpg"], "a": ["2.jpg"]}',
    "deep.json": b"[" * 100_000,
    "slashes.txt": b"/\n" * 100_000,
    "header.csv": b"id,name\n1,cat\n",
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_a_hostile_file_gets_one_clear_answer(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="No list of images found"):
        audit(laid(tmp_path, {name: HOSTILE[name]}))
    lists = read_lists(laid(tmp_path, {"list.txt": NUMBERS[:3]}))
    assert list(lists.unread) == [name]
    assert "\n" not in lists.unread[name].why


def test_ten_million_lines_take_bounded_memory(tmp_path: Path) -> None:
    million = b"".join(b"%012d\n" % n for n in range(1_000_000))
    laid(tmp_path, {"a.txt": million * 10})
    tracemalloc.start()
    try:
        lists = read_lists(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(lists.lists[0]) == 10_000_000
    assert len(lists.images) == 1_000_000
    # The file, and some columns of eight bytes a line.
    assert peak < 8 * len(million) * 10


def shared_images(lists: ListSet, *names: str) -> int:
    """How many images two lists share; of one, how many it has."""
    first, last = (lists.index[name] for name in (names[0], names[-1]))
    return int(lists.images.overlaps[first, last])


def _of(shared: Path, name: str, **options: object) -> Report:
    return audit(shared / "data" / "atlas" / name, **options)  # type: ignore[arg-type]


@real_files("atlas_lists")
def check_openood(shared: Path) -> None:
    roles = {"imagenet/test_imagenet": "id"}
    sets = ("ssb_hard", "ninco", "inaturalist", "textures", "openimage_o")
    roles |= {f"imagenet/test_{name}": "ood" for name in sets}
    report = _of(shared, "openood", roles=roles)
    lists = report.target.published
    assert lists is not None
    assert (len(lists), dict(lists.unread)) == (14, {})
    sizes = {one.name.removeprefix("imagenet/"): len(one.unique) for one in lists.lists}
    assert sizes == {
        "val_imagenet": 5_000, "test_imagenet": 45_000, "test_ssb_hard": 49_000, "test_ninco": 5_879,
        "test_textures": 5_160, "test_openimage_o": 15_869, "val_openimage_o": 1_763, "test_inaturalist": 10_000,
        "test_imagenet_c": 10_000, "test_imagenet_r": 30_000, "test_imagenet_v2": 10_000, "test_imagenet_o": 2_000,
        "my_imagenet_va": 25_000, "my_imagenet_te": 25_000,
    }  # fmt: skip
    assert all(len(one) == len(one.unique) for one in lists.lists)

    def shares(one: str, two: str) -> int:
        return shared_images(lists, f"imagenet/{one}", f"imagenet/{two}")

    assert (shares("val_imagenet", "test_imagenet"), shares("val_openimage_o", "test_openimage_o")) == (0, 0)
    assert shares("my_imagenet_va", "my_imagenet_te") == 0
    halves = ("my_imagenet_va", "my_imagenet_te")
    assert sum(shares("val_imagenet", one) for one in halves) == 5_000
    assert sum(shares("test_imagenet", one) for one in halves) == 45_000
    assert shares("val_imagenet", "my_imagenet_va") == 2_502
    # A corrupted copy is another file, whatever photo it was made of.
    assert shares("test_imagenet_c", "test_imagenet") == 0
    ratios = [one.text.split()[3] for one in found(report, "PL8") if one.text.startswith("ID : OOD")]
    assert sorted(ratios) == sorted(["0.92", "7.65", "4.50", "8.72", "2.84"])
    per = {one.about: one.text for one in found(report, "PL8")}
    assert per["imagenet/test_imagenet_r"] == "30,000 images in 200 classes, 51 to 430 each"
    assert per["imagenet/my_imagenet_va"] == "25,000 images in 1,000 classes, 15 to 36 each"
    assert per["imagenet/my_imagenet_te"] == "25,000 images in 1,000 classes, 14 to 35 each"
    assert found(report, "PL9", "warn") == []
    assert report.exit_status == 0


@real_files("atlas_lists")
def check_a_test_and_a_validation_list_are_a_third(shared: Path, tmp_path: Path) -> None:
    val, test, whole = names = ("val_openimage_o", "test_openimage_o", "openimage_o")
    for folder, name in zip(("openood/imagenet", "openood/imagenet", "vim"), names, strict=True):
        shutil.copy(shared / "data/atlas" / folder / f"{name}.txt", tmp_path)
    lists = read_lists(tmp_path)
    assert (shared_images(lists, whole), shared_images(lists, val, test)) == (17_632, 0)
    stems = [set(one.read.stems.split()) for one in (lists.lists[lists.index[name]] for name in (val, test, whole))]
    assert stems[0] | stems[1] == stems[2]


@real_files("atlas_lists")
def check_ssb_ninco_and_imagenetood(shared: Path) -> None:
    report = _of(shared, "ssb")
    assert [(one.name, len(one.members)) for one in report.target.files] == [("imagenet_21k_val_files", 99_000)]
    assert found(report, "PL8")[0].text == "99,000 images in 1,980 classes, 50 to 50 each"
    roles = {one.about.removesuffix("_ssb_splits.json"): one.verdict for one in found(report, "PL3")}
    assert roles == dict.fromkeys(("aircraft", "cub", "imagenet", "scars"), "pass")

    report = _of(shared, "ninco")
    sizes = {one.name: len(one.members) for one in report.target.files}
    assert [sizes[f"NINCO_{name}"] for name in ("OOD_classes", "popular_datasets_subsamples", "OOD_unit_tests")] == [
        5_879, 2_715, 6_800,
    ]  # fmt: skip
    verdicts = {name: size for name, size in sizes.items() if name.startswith("cleaning_annotations/")}
    assert (len(verdicts), sum(verdicts.values())) == (52, 12_050)
    repeated = {one.about: one.count for one in found(report, "DS1", "fail")}
    places = "cleaning_annotations/annotations_subsampled_datasets/OOD_Places_MOS"
    assert repeated == {places: 5}
    [conflict] = found(report, "PL9", "warn")
    assert (conflict.about, conflict.examples) == (
        places, ("datasets/OOD_Places_MOS/i_ice_floe/00000212.jpg: 'i' and 'o' (lines 95, 290)",)
    )  # fmt: skip

    lists = read_lists(shared / "data/atlas/imagenetood").lists
    folders = {path.split(b"/")[0] for path in lists[0].read.paths.split(b"\n")[:-1]}
    assert (len(lists[0].unique), len(folders)) == (31_802, 637)


@real_files("atlas_lists")
def check_rwd_and_ovcoco(shared: Path) -> None:
    report = _of(shared, "rwd/Aquatic")
    assert found(report, "PL5")[0].text == (
        "they share 0 of 318 names of the list and 318 of the JSON; by the name before .rf. 318 of 318 and 318"
    )
    assert "318 images with 225 ids: 60 repeated ids, on 153 images with 1,039 of 2,252 annotations; " in (
        found(report, "PL6")[0].text
    )
    assert found(report, "PL6")[0].text.endswith("2,252 annotations with 1,896 ids")
    [groups] = found(report, "PL7")
    told = "by Roboflow source: 318 and 319 source photos, none on both sides"
    assert (groups.verdict, groups.text) == ("pass", told)
    assert found(report, "PL4", "warn")[0].text.endswith("classnames.txt: object")
    assert found(report, "PL3", "fail", "warn") == []

    report = _of(shared, "rwd/Medical")
    shared_names = {one.about.split()[0]: one.text.split(";")[0] for one in found(report, "PL5", "warn")}
    assert shared_names == {
        "train.txt": "they share 93 of 93 names of the list and 94 of the JSON",
        "test.txt": "they share 89 of 89 names of the list and 91 of the JSON",
    }
    ids = {one.about: one.text for one in found(report, "PL6", "fail")}
    assert ids["train.json"].startswith(
        "94 images with 68 ids: 19 repeated ids, on 45 images with 1,025 of 2,113 annotations"
    )
    assert ids["test.json"].startswith(
        "91 images with 67 ids: 15 repeated ids, on 39 images with 923 of 2,042 annotations"
    )
    assert ids["annotations.json"].startswith(
        "185 images with 135 ids: 34 repeated ids, on 84 images with 1,948 of 4,155 annotations"
    )
    [groups] = found(report, "PL7")
    # Four source photos, each in both lists: the names say so, however few they are.
    assert (groups.verdict, groups.count) == ("warn", 4)
    assert "4 source photos on both sides, with 93 of 93 lines of train and 89 of 89 lines of test" in groups.text

    report = _of(shared, "rwd/Aerial")
    lists = read_lists(shared / "data/atlas/rwd/Aerial")
    assert not any(one.form == "coco json" for one in lists.files.values())
    assert report.verdict("DS2") == "pass"

    report = _of(shared, "ovcoco")
    assert found(report, "PL4", "warn")[0].text == "1 of 49 names not among the classes of COCO: background"
    assert found(report, "PL4", "info")[0].count == 15


@real_files("atlas_lists")
def check_nuowodb_opendet_and_prob(shared: Path) -> None:
    lists = read_lists(shared / "data/atlas/nuowodb/nuOWODB")
    assert tuple(lists.index) == ("t1_train", "t2_train", "t3_train", "test")
    overlap = lists.images.overlaps
    assert overlap.diagonal().tolist() == [53_850, 34_957, 25_682, 14_884]
    assert (overlap[0, 1], overlap[0, 2], overlap[1, 2]) == (30_007, 22_218, 15_547)
    assert (overlap[3, :3].tolist(), len(lists.images) - 14_884) == ([0, 0, 0], 60_665)

    folder = shared / "data"
    broken = folder / "owod/published/opendet/voc_coco_15000_test.txt"
    report = _of(shared, "opendet")
    told = {one.about: one for one in found(report, "PL2", "warn")}
    assert "coco 558, voc2007 4,952" in told["voc_coco_2500_test and voc_coco_5000_test"].text
    assert "coco 2,305, voc2007 4,952" in told["voc_coco_5000_test and voc_coco_10000_test"].text
    assert "coco 9,069, voc2007 4,952" in told["voc_coco_10000_test and voc_coco_20000_test"].text
    assert shared_images(read_lists(folder / "atlas/opendet"), "voc_coco_20_60_test") == 14_284
    assert [one.text for one in found(report, "PL1")] == ["4 counts in names, each that of its list"]
    if broken.is_file():
        [finding] = [one for one in found(audit(broken.parent), "PL1") if one.about == "voc_coco_15000_test"]
        assert (finding.verdict, "4,952 lines" in finding.text) == ("fail", True)

    report = _of(shared, "prob")
    sizes = {one.name: (len(one.members), len(one.unique)) for one in report.target.files}
    assert sizes["TOWOD/owod_all_task_test"] == (10_246, 9_119)
    assert sizes["train"] == (122_218, 122_218)
