"""Lists of eight repositories that grew up elsewhere: what is true of them is told, and nobody is accused falsely.

The facts were computed by scripts that share no code with the project.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.cli import main
from curation.extensions.audit.report import Report
from tests.extensions.audit.planted import write
from tests.real_files import real_files

ACCUSING = {"error", "warning"}
WORDS = re.compile(r"\b(leak\w*|wrong|cheat\w*|contaminat\w*|stems?|namespace|multiset)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Fact:
    """A statement on some lists, or the part of a statement that is about them."""

    rule: str
    gravity: str
    lists: frozenset[str]
    count: int
    text: str


@dataclass(frozen=True)
class Told:
    """What an audit of a folder said."""

    data: dict[str, Any]

    def facts(self) -> Iterator[Fact]:
        for one in self.data["statements"]:
            for part in one.get("parts") or [one]:
                lists = frozenset(name.rpartition("/")[2] for name in part["lists"])
                said = f"{part['text']} {one['text'] if part is one else ''} {' '.join(part.get('examples', ()))}"
                yield Fact(one["rule"], one["gravity"], lists, part["count"], said)

    def accused(self, *rules: str) -> set[tuple[str, frozenset[str], int]]:
        """Return rule, lists and count of all errors and warnings, or of those of some rules."""
        found = {(one.rule, one.lists, one.count) for one in self.facts() if one.gravity in ACCUSING}
        return {one for one in found if not rules or one[0] in rules}

    def says(self, rule: str, gravity: str, lists: str, *numbers: int) -> bool:
        """Return whether a rule said all these numbers of these lists."""
        wanted = frozenset(lists.split())
        return any(
            one.rule in rule.split("|")
            and one.gravity in gravity.split("|")
            and one.lists == wanted
            and all(number == one.count or has(one.text, number) for number in numbers)
            for one in self.facts()
        )

    def lacks(self, *patterns: str) -> bool:
        """Return whether no statement of any gravity holds one of these."""
        said = json.dumps(self.data["statements"])
        return not any(re.search(pattern, said) for pattern in patterns)

    def numbers(self, *numbers: int) -> bool:
        """Return whether the report holds all of these numbers somewhere."""
        said = json.dumps([self.data[key] for key in ("statements", "lists")])
        return all(has(said, number) or re.search(rf": {number}\b", said) for number in numbers)

    def shapes(self) -> dict[str, tuple[int, int]]:
        """Return lines and images of each list."""
        return {one["name"].rpartition("/")[2]: (one["lines"], one["images"]) for one in self.data["lists"]}


def has(said: str, number: int) -> bool:
    return bool(re.search(rf"(?<![\d,.])({number:,}|{number})(?!\d|,\d)", said))


def silent(*rules: str) -> list[str]:
    """Return what a statement of these rules that is no pass begins with."""
    return [f'"rule": "{rule}", "gravity": "(error|warning|note)' for rule in rules]


@cache
def audited(shared: Path, name: str) -> Report:
    return curation.audit(shared / "data" / "strangers" / name)


@cache
def told(shared: Path, name: str) -> Told:
    data = audited(shared, name).data()
    assert not data["unread"], data["unread"]
    return Told(data)


def pairs(*names: str) -> list[str]:
    return [f"{name}_train {name}_test" for name in names]


OFFICE_AND_PACS = {
    **{"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929, "amazon": 2817, "dslr": 498},
    **{"webcam": 795, "amazon10": 958, "dslr10": 157, "webcam10": 295},
}
VLCS = {"CALTECH": (991, 424), "LABELME": (1859, 797), "PASCAL": (2363, 1013), "SUN": (2297, 985)}


@real_files("strangers")
def check_ten_of_fourteen_pairs_of_jigendg_are_one_file(shared: Path) -> None:
    report = told(shared, "jigendg")
    same = {("DS2", frozenset((f"{name}_train", f"{name}_test")), n) for name, n in OFFICE_AND_PACS.items()}
    assert report.accused() == same
    errors = [one for one in report.data["statements"] if one["gravity"] == "error"]
    assert len(errors) == report.data["sums"]["errors"] == 1
    assert "10 of 14 pairs" in errors[0]["text"]
    assert "--role" in json.dumps(errors[0])
    shapes = report.shapes()
    assert len(shapes) == 28
    assert {name: (shapes[f"{name}_train"][1], shapes[f"{name}_test"][1]) for name in VLCS} == VLCS
    assert all(lines == images for lines, images in shapes.values())
    assert "/home/fmc/data" in json.dumps(report.data)
    assert report.lacks(r"share 424", "label of 363", "100 stems", "PL10", *silent("DS1", "PL9", "PL7"))


@real_files("strangers")
def check_mislas_is_sound(shared: Path) -> None:
    report = told(shared, "mislas")
    assert not report.accused()
    sizes = {"Places_LT_train": 62_500, "Places_LT_test": 36_500, "ImageNet_LT_test": 50_000}
    assert report.shapes() == {name: (n, n) for name, n in sizes.items()}
    assert report.numbers(365, 4980, 100, 50)
    assert report.lacks("1,072", r"\b918\b", "5,000 distinct", "61,428", *silent("DS1", "PL9"))


DRIVES = {"eigen": (33, 33, 28), "kitti": (32, 31, 29)}
LINES = {"eigen": (22_600, 888, 697), "kitti": (29_000, 1_159, 12_223)}
BETWEEN_KITTI = {
    **{"eigen_train kitti_test": 5166, "eigen_train kitti_train": 16756, "eigen_train kitti_val": 678},
    **{"kitti_train eigen_test": 330, "kitti_train eigen_val": 668, "kitti_val eigen_test": 17},
    **{"kitti_val eigen_val": 33, "kitti_test eigen_test": 350, "kitti_test eigen_val": 187},
}


@real_files("strangers")
def check_drives_of_monodepth_stand_in_train_and_val(shared: Path) -> None:
    report = told(shared, "monodepth")
    accused = {(rule, lists) for rule, lists, _ in report.accused()}
    assert accused == {("PL7", frozenset((f"{one}_train_files", f"{one}_val_files"))) for one in DRIVES}
    assert report.says("PL7", "warning", "eigen_train_files eigen_val_files", 33, 22_600, 888)
    assert report.says("PL7", "warning", "kitti_train_files kitti_val_files", 31, 28_978, 1_159)
    for family, (train, val, test) in DRIVES.items():
        assert report.says("PL7", "pass", f"{family}_train_files {family}_test_files", train, test)
        assert report.says("PL7", "pass", f"{family}_val_files {family}_test_files", val, test)
        shapes = [report.shapes()[f"{family}_{part}_files"] for part in ("train", "val", "test")]
        assert shapes == [(n, n) for n in LINES[family]]
    assert report.says("PL7", "pass", "cityscapes_val_files cityscapes_test_files")
    for lists, count in BETWEEN_KITTI.items():
        names = " ".join(f"{name}_files" for name in lists.split())
        assert report.says("DS2|PL14", "note", names, count), names
    assert report.lacks("17,447", "stems", *silent("DS1"))


@real_files("strangers")
def check_a_patient_of_covidx6_stands_on_both_sides(shared: Path) -> None:
    report = told(shared, "covidnet")
    assert report.accused() == {("PL7", frozenset(("train_COVIDx6", "test_COVIDx6")), 1)}
    [warning] = [one for one in report.data["statements"] if one["gravity"] == "warning"]
    assert "ANON191" in json.dumps(warning)
    assert "1 of 14,311" in warning["text"]
    assert "2 of 200" in warning["text"]
    assert "patient" in warning["text"]
    assert report.says("PL7", "pass", "train_COVIDx7A test_COVIDx7A", 14_923, 272)
    assert report.says("PL7", "pass", "train_COVIDx9A test_COVIDx9A", 16_424, 378)
    sizes = {"6": (14_311, 200), "7A": (15_111, 300), "9A": (30_130, 400)}
    for version, counts in sizes.items():
        for part, count in zip(("train", "test"), counts, strict=True):
            assert report.shapes()[f"{part}_COVIDx{version}"] == (count, count)
    between = {("train_COVIDx9A", "test_COVIDx6"): 9, ("test_COVIDx6", "test_COVIDx7A"): 99}
    between |= {("test_COVIDx7A", "test_COVIDx9A"): 196, ("test_COVIDx6", "test_COVIDx9A"): 16}
    for lists, count in between.items():
        assert report.says("DS2|PL14", "note", " ".join(lists), count), lists
    assert report.numbers(1_182, 17, 197)
    others = product(sizes, sizes)
    for one, two in others:
        if one != two and (one, two) != ("9A", "6"):
            assert not report.says("DS2|PL14", "note", f"train_COVIDx{one} test_COVIDx{two}")
    assert report.lacks("COVID: 1,182", "'COVID'", "several words", *silent("PL9"))


@real_files("strangers")
def check_patients_of_chexnet_stand_on_one_side(shared: Path) -> None:
    report = told(shared, "chexnet")
    assert not report.accused()
    assert report.shapes() == {f"{k}_list": (n, n) for k, n in (("train", 78_468), ("val", 11_219), ("test", 22_433))}
    people = {"train_list": 21_528, "val_list": 3_090, "test_list": 6_187}
    for one, two in (("train_list", "val_list"), ("train_list", "test_list"), ("val_list", "test_list")):
        assert report.says("PL7", "pass", f"{one} {two}", people[one], people[two]), (one, two)
    assert report.numbers(14_461, 2_028, 4_246, 42_405, 6_079, 11_928)
    assert report.lacks("no list of image", "text before the number", *silent("DS1", "PL9"))


@real_files("strangers")
def check_two_annotations_of_taco_stand_twice(shared: Path) -> None:
    report = told(shared, "taco")
    assert {rule for rule, _, _ in report.accused()} == {"PL6"}
    [error] = [one for one in report.data["statements"] if one["gravity"] in ACCUSING]
    assert error["gravity"] == "error"
    assert all(has(json.dumps(error), number) for number in (309, 4040, 93, 101, 1281, 1300))
    assert list(report.shapes().values()) == [(1500, 1500)]
    assert report.numbers(60, 4_784)
    assert report.lacks("stems", r"\b239\b", *silent("PL7", "PL10"))


@real_files("strangers")
def check_tasks_of_cocotasks_share_photos_but_train_and_test_none(shared: Path, tmp_path: Path) -> None:
    report = told(shared, "cocotasks")
    assert not report.accused()
    lines = {"train": 3600, "test": 900}
    for task, part in product(range(1, 15), lines):
        assert report.shapes()[f"imgIds_task_{task}_{part}"] == (lines[part], lines[part])
    for one in report.facts():
        parts = {name.rpartition("_")[2] for name in one.lists}
        assert not (one.rule in ("DS2", "PL14") and one.gravity == "note" and len(one.lists) == 2 and len(parts) == 2)
    assert report.numbers(11_532, 2_800)
    assert report.lacks("different contents", "VOC", "should grow", *silent("PL2"))
    parts = {"coco-train2017": "train2017_ids_in_file_order.txt", "coco-val2017": "val2017_ids.txt"}
    for name, ids in parts.items():
        numbers = [int(row) for row in (shared / "data" / "coco" / ids).read_text().split()]
        images = [{"id": n, "file_name": f"{n:012}.jpg", "width": 640, "height": 480} for n in numbers]
        cats = [{"id": 1, "name": "person"}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"images": images, "annotations": [], "categories": cats}))
    known = {name: tmp_path / f"{name}.json" for name in parts}
    with_coco = Told(curation.audit(shared / "data" / "strangers" / "cocotasks", known).data())
    assert with_coco.numbers(8_328, 9_505)


UNIONS = {
    "valid_midog_csid": (530, "1b 1c"),
    "valid_midog_near": (5338, "2 3 4 5 6a 6b 7"),
    "valid_oasis3_near": (317, "atlas_near brats_near ct_near"),
    "valid_oasis3_csid": (75, "scanner_csid t2w_csid"),
    "valid_oasis3_far": (12, "chaos_inPhase_far heart_far"),
    "valid_phakir_csid": (217, "heavy_smoke_csid medium_smoke_csid"),
    "valid_phakir_near": (8306, "cholec_near endovis2015_near endovis2018_near"),
}
PEOPLE = {
    "train_oasis3 test_oasis3_ct_near": (551, 884, 1321),
    "train_oasis3 test_oasis3_t2w_csid": (446, 462, 582),
    "train_oasis3 valid_oasis3_ct_near": (97, 103, 147),
    "test_oasis3 valid_oasis3_t2w_csid": (62, 65),
    "train_phakir test_phakir_heavy_smoke_csid": (4, 737, 891),
    "train_phakir test_phakir_medium_smoke_csid": (4, 681, 822),
}
APART = {
    "oasis3": {"train": 848, "valid": 177, "test": 181},
    "phakir": {"train": 4, "valid": 1, "test": 1},
    "midog": {"train": 40, "valid": 5, "test": 5},
}


@real_files("strangers")
def check_openmibood_shares_subjects_and_videos_and_no_image(shared: Path) -> None:
    report = told(shared, "openmibood")
    assert {rule for rule, _, _ in report.accused()} == {"PL7"}
    assert sum(lines for lines, _ in report.shapes().values()) == 308_883
    assert all(lines == images for lines, images in report.shapes().values())
    for lists, numbers in PEOPLE.items():
        assert report.says("PL7", "warning" if "test_oasis3 " not in lists else "warning|note", lists, *numbers), lists
    for lists, numbers in (("ct_near", (179, 113)), ("t2w_csid", (35, 34))):
        assert report.says("PL7", "note", f"test_oasis3 test_oasis3_{lists}", *numbers), lists
    groups = {
        path.stem: [re.match(r".*?(?:OAS\d{5}|Video_\d\d)", row) for row in path.read_text().splitlines()]
        for path in (shared / "data" / "strangers" / "openmibood").rglob("*.txt")
    }
    for _, lists, count in report.accused():
        one, two = ({found[0] for found in groups[name] if found} for name in lists)
        assert len(one & two) == count > 0, lists
    for bench, parts in APART.items():
        for one, two in (("train", "valid"), ("train", "test"), ("valid", "test")):
            assert report.says("PL7", "pass", f"{one}_{bench} {two}_{bench}", parts[one], parts[two]), (bench, one, two)
    for whole, (count, members) in UNIONS.items():
        bench = re.sub("_[a-z]+$", "", whole)
        assert report.says("PL14", "note", " ".join([whole, *(f"{bench}_{one}" for one in members.split())]), count)
    assert report.numbers(209, 205, 7_778, 14_074)
    assert report.lacks("endovis201[58]_near: (80|500) lines", "PL10", r"40 (distinct )?last")
    assert audited(shared, "openmibood").exit_status == 0


@real_files("strangers")
def check_statements_are_in_words_that_an_author_would_believe(shared: Path) -> None:
    for folder in sorted((shared / "data/strangers").iterdir()):
        if folder.is_dir():
            said = audited(shared, folder.name).statements
            assert not [one.text for one in said if WORDS.search(one.text)], folder


def accused(folder: Path) -> set[tuple[str, str]]:
    statements = curation.audit(folder).data()["statements"]
    return {(one["rule"], one["gravity"]) for one in statements if one["gravity"] in ACCUSING}


def test_file_names_alone_name_no_image(tmp_path: Path) -> None:
    rows = [f"office/SET/{name}/frame_{number:04}.jpg" for name in ("desk", "mug", "pen") for number in range(31)]
    lists = {
        f"{part}.txt": [f"{row.replace('SET', part)} {1 + row.count('mug')}" for row in rows]
        for part in ("train", "test")
    }
    assert not accused(write(lists, tmp_path / "folders"))


NUMBERED_ANEW = {
    "stereo": ("training/image_2/{:06}.png", "testing/image_2/{:06}.png"),
    "yolo": ("./images/train/{:06}.jpg", "./images/val/{:06}.jpg"),
    "cases": ("training/Case{:02}/slice_1.mhd.npy", "test/Case{:02}/slice_1.mhd.npy"),
    "defects": ("bottle/train/good/{:03}.png", "bottle/test/good/{:03}.png"),
    "videos": ("train/video_{:02}/1.jpg", "test/video_{:02}/1.jpg"),
}


@pytest.mark.parametrize("name", NUMBERED_ANEW)
def test_numbers_that_begin_anew_in_train_and_test_name_no_image_and_no_group(name: str, tmp_path: Path) -> None:
    train, test = NUMBERED_ANEW[name]
    lists = {"train.txt": [train.format(n) for n in range(60)], "test.txt": [test.format(n) for n in range(40)]}
    lists["train.txt"] += [train.format(n).replace("bottle", "cable") for n in range(60, 120)]
    report = curation.audit(write(dict(lists), tmp_path)).data()["statements"]
    assert {one["gravity"] for one in report if one["rule"] == "PL7"} == {"undecidable"}
    assert not [one for one in report if one["gravity"] in ACCUSING]


def test_bare_names_that_count_below_folders_of_train_and_val_are_undecidable(tmp_path: Path) -> None:
    lists = {
        f"{part}/labels.json": {
            "images": [{"id": number, "file_name": f"{number:04}.jpg"} for number in range(size)],
            "annotations": [],
            "categories": [{"id": 1, "name": "cat"}],
        }
        for part, size in (("train", 60), ("val", 30))
    }
    report = curation.audit(write(dict(lists), tmp_path)).data()["statements"]
    assert not [one for one in report if one["gravity"] in ACCUSING]
    [said] = [one for one in report if one["rule"] == "DS4"]
    assert said["gravity"] == "undecidable"
    assert "both hold 30 numbers, but each list may count the images of its own folder" in said["text"]


HASHES = [f"{number * 7919 % 2**32:08x}" for number in range(200)]
SOUND: dict[str, dict[str, Any]] = {
    "comments": {
        "train.txt": [
            "# made 2026-03-01",
            "#path: label",
            *(f"{name}.jpg {n % 4}" for n, name in enumerate(HASHES[:99])),
        ],
        "test.txt": ["# made 2026-03-01", *(f"{HASHES[n]}.jpg {n % 4}" for n in range(99, 200))],
    },
    "audio manifests": {
        f"{part}.tsv": [f"/data/{part}", *(f"{n // 9}/{n}.flac\t{16000 + n}" for n in range(size))]
        for part, size in (("train", 90), ("valid", 40))
    },
    "labels of names that begin anew": {
        f"{part}/labels.txt": [f"{n:04}.jpg {n * step % 5}" for n in range(size)]
        for part, size, step in (("train", 80, 3), ("test", 40, 7))
    },
    "texts of names that begin anew": {
        f"{part}/metadata.jsonl": [json.dumps({"file_name": f"{n:04}.png", "text": f"{part} {n}"}) for n in range(size)]
        for part, size in (("train", 40), ("test", 20))
    },
    "losses of train and val": {
        "history.csv": [
            "epoch,train,val",
            *(f"{n},0.{n * 7919 % 99991:06},0.{n * 7919 % 99991:06}" for n in range(40)),
        ],
        "train.txt": HASHES[:120],
        "test.txt": HASHES[120:],
    },
    "columns of numbers below a header": {
        f"Ebay_{part}.txt": ["image_id class_id super_class_id path", *(f"{n} {n // 4} 1 sofa/{n}_0.JPG" for n in rows)]
        for part, rows in (("train", range(1, 60)), ("test", range(60, 90)))
    },
    "sizes and boxes in JSON": {
        f"{part}.json": {"size": [640, 480], "images": names, "of": {f"s{n}": {"bbox": [1, 2, 3, 4]} for n in range(9)}}
        for part, names in (("train", HASHES[:120]), ("test", HASHES[120:]))
    },
    "labels and weights one a line": {
        "train.txt": HASHES[:120],
        "test.txt": HASHES[120:],
        "train_labels.txt": [str(n * n % 7) for n in range(120)],
        "test_labels.txt": [str(n * n % 7) for n in range(80)],
        "train_weights.txt": [f"0.{n * n % 97:02}" for n in range(120)],
        "labels.json": {"train_labels": [n % 7 for n in range(120)], "train": HASHES[:120], "test": HASHES[120:]},
    },
    "arrays that are columns": {
        f"{part}.json": {
            "label_names": ["n01440764", "001.Bird", "002.Owl"],
            "image_names": [f"/data/{name}.jpg" for name in names],
            "image_labels": [number % 3 for number in range(len(names))],
        }
        for part, names in (("train", HASHES[:90]), ("test", HASHES[90:]))
    },
    "conversations": {
        "train.jsonl": [
            json.dumps({"image": f"{HASHES[n // 3]}.jpg", "conversations": [{"value": f"turn {n}"}]}) for n in range(90)
        ]
    },
    "scores": {"runs.csv": ["image,score", *(f"{HASHES[n // 3]}.jpg,0.{n:03}" for n in range(90))]},
    "questions": {
        f"{part}.csv": ["image,question", *(f"{HASHES[n // 3]}.jpg,is it {part} {n}?" for n in range(90))]
        for part in ("counting", "colours")
    },
}


@pytest.mark.parametrize("name", SOUND)
def test_nobody_is_accused_of_what_a_form_holds_by_design(name: str, tmp_path: Path) -> None:
    assert not accused(write(SOUND[name], tmp_path))


@pytest.mark.parametrize(
    ("form", "counter", "gravity"),
    [("{:06}", range(60), "undecidable"), ("{}", range(1, 61), "undecidable"), ("{:06}", range(5, 65), "error")],
)
def test_numbers_from_zero_or_one_to_the_last_may_be_counted_anew(
    form: str, counter: range, gravity: str, tmp_path: Path
) -> None:
    """KITTI's and CIFAR's test images are numbered from 0, as those of training are."""
    lists = {"train.txt": [form.format(n) for n in range(0, 80, 2)], "test.txt": [form.format(n) for n in counter]}
    report = curation.audit(write(dict(lists), tmp_path)).data()["statements"]
    [said] = [one for one in report if one["rule"] == "DS2" and one["gravity"] != "pass"]
    assert said["gravity"] == gravity
    assert ("each list may count the images of its own folder" in said["text"]) == (gravity == "undecidable")


def test_numbers_that_may_be_counters_are_undecidable_with_their_counts(tmp_path: Path) -> None:
    """Lists of three roles that count from 1, each with its share of equal numbers: every pair states its count."""
    lists = {"train.txt": range(1, 101), "val.txt": range(1, 44), "test.txt": range(1, 27)}
    report = curation.audit(write({name: [*map(str, rows)] for name, rows in lists.items()}, tmp_path)).data()
    said = {one["rule"]: one for one in report["statements"] if one["rule"] in ("DS2", "DS4")}
    assert {one["gravity"] for one in said.values()} == {"undecidable"}
    assert (said["DS4"]["count"], said["DS2"]["count"]) == (43, 26 + 26)
    assert "their names are numbers (2: test and train (26), test and val (26))" in said["DS2"]["text"]


@pytest.mark.parametrize(("more", "said"), [(9, True), (-9, False)])
def test_a_test_list_of_a_whole_domain_is_told_with_its_way_out(more: int, said: bool, tmp_path: Path) -> None:
    """PACS trains on ``train_kfold`` and tests on the whole of another domain, ``test_kfold``."""
    lists = {"art_train_kfold.txt": HASHES[:90], "art_test_kfold.txt": HASHES[: 90 + more] + HASHES[150:]}
    [report] = [
        one for one in curation.audit(write(dict(lists), tmp_path)).data()["statements"] if one["rule"] == "DS2"
    ]
    assert ("whole domains" in report["hint"]) == said


@pytest.mark.parametrize("rare", [lambda video, frame: frame == 7, lambda video, frame: (video + (frame == 7)) % 2])
def test_a_rare_label_in_a_folder_is_no_mistake_where_folders_are_no_classes(rare: Any, tmp_path: Path) -> None:
    rows = [f"v{video:03}/{frame:05}.png {int(rare(video, frame))}" for video in range(40) for frame in range(25)]
    assert not accused(write({"train.txt": rows[:750], "test.txt": rows[750:]}, tmp_path))


def test_a_folder_a_frame_and_a_side_are_one_image_and_no_label(tmp_path: Path) -> None:
    lines = [f"{folder} {frame} {side}" for folder in range(40) for frame in range(0, 1500, 3) for side in "lr"]
    lists = {"train.txt": lines[:36_000], "test.txt": lines[36_000:]}
    report = Told(curation.audit(write(dict(lists), tmp_path)).data())
    assert not report.accused()
    assert report.shapes() == {"train": (36_000, 36_000), "test": (4_000, 4_000)}


def test_folds_may_share_images_and_one_note_says_so(tmp_path: Path) -> None:
    rows = [f"clips/{number * 7919:08x}.avi" for number in range(90)]
    lists = {f"testlist0{fold + 1}.txt": rows[fold::3] for fold in range(3)}
    lists |= {f"trainlist0{f + 1}.txt": [row for row in rows if row not in rows[f::3]] for f in range(3)}
    report = Told(curation.audit(write(dict(lists), tmp_path)).data())
    assert not report.accused()
    notes = [one for one in report.data["statements"] if one["gravity"] == "note" and "trainlist01" in one["lists"]]
    assert 1 <= len([one for one in notes if any("test" in name for name in one["lists"])]) <= 1


@pytest.mark.parametrize(
    ("pattern", "status"), [(r"room\d+", 2), (r"(floor\d+)", 0), (r"(room\d+)", 0), (r"(r+)+$", 0)]
)
def test_a_pattern_of_the_user_is_refused_or_told(
    pattern: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"room{number % 7}/{number * 7919:08x}{'r' * 60}s.jpg" for number in range(200)]
    folder = write({"train.txt": rows[:150], "test.txt": rows[150:]}, tmp_path)
    assert main(["audit", str(folder), "--group", pattern, "--json"]) == status
    printed = capsys.readouterr()
    if status:
        assert pattern in printed.err
        assert "Traceback" not in printed.err
        return
    [said] = [one for one in json.loads(printed.out)["statements"] if one["rule"] == "PL7"]
    wanted = "warning" if pattern == r"(room\d+)" else "undecidable"
    assert said["gravity"] == wanted
    assert said["count"] == 7 or wanted == "undecidable"
    assert pattern in json.dumps(said["text"] + said["hint"]).replace("\\\\", "\\") or wanted == "warning"


def test_a_name_with_three_numbers_is_no_pair_of_photos(tmp_path: Path) -> None:
    rows = [f"Abyssinian_{n} {n % 4 + 1} 1 {n % 2 + 1}" for n in range(140)]
    lists = {"trainval.txt": rows[:90], "test.txt": rows[90:]}
    with pytest.raises(curation.CurationError, match="No list of images"):
        curation.audit(write(dict(lists), tmp_path))


def test_a_number_of_the_row_is_no_fact_of_an_image(tmp_path: Path) -> None:
    """NINCO's tables have a column ``index``, the row of the table that they were taken from."""
    for name, step in (("a", 1), ("b", 7)):
        rows = [f"{number * step},x/{number}.jpg,{'red' if name == 'a' else 'blue'}" for number in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["index,path,colour", *rows]) + "\n")
    told = [one["text"] for one in curation.audit(tmp_path).data()["statements"] if one["rule"] == "PL16"]
    assert len(told) == 1
    assert "the column colour differs for 40 of 40 files" in told[0]
