"""What is true of eight repositories' lists, counted by others: images, roles, families, shared images, groups."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from curation.audit.groups import GroupResult, Groups
from curation.audit.identity import Images
from curation.audit.lists import ListSet, read_lists
from curation.audit.roles import Pair, RoleGuess, between_families, comparisons, read_role
from tests.real_files import provided, real_files


@dataclass(frozen=True)
class Strangers:
    """Lists of a repository, by their name without folders."""

    lists: ListSet
    names: tuple[str, ...]
    guesses: tuple[RoleGuess, ...]
    pairs: tuple[Pair, ...]
    groups: Groups

    @property
    def images(self) -> Images:
        return self.lists.images

    def compared(self) -> set[tuple[str, str]]:
        return {(self.names[pair.a], self.names[pair.b]) for pair in self.pairs if pair.kind == "family"}

    def count(self, one: str, two: str) -> int:
        return int(self.images.overlaps[self.names.index(one), self.names.index(two)])

    def between(self) -> dict[tuple[str, str], int]:
        pairs = between_families(self.images.overlaps, self.pairs)
        names = [tuple(sorted((self.names[pair.a], self.names[pair.b]))) for pair in pairs]
        return {(one, two): self.count(one, two) for one, two in names}

    def sharing(self, kinds: Iterable[str] = ("exact", "bytes")) -> set[tuple[str, str]]:
        family = [pair for pair in self.pairs if pair.kind == "family"]
        return {
            (self.names[pair.a], self.names[pair.b])
            for pair in family
            if self.images.strength(pair.a, pair.b).strength in kinds
        }

    def grouped(self, one: str, two: str) -> GroupResult:
        return self.groups.compare(self.names.index(one), self.names.index(two))

    def repeats(self) -> int:
        return sum(len(one) - len(one.unique) for one in self.lists.lists)


@provided
def strangers(shared: Path) -> dict[str, Strangers]:
    found = {}
    for folder in sorted(path for path in (shared / "data" / "strangers").iterdir() if path.is_dir()):
        lists = read_lists(folder)
        guesses = tuple(read_role(one.name) for one in lists.lists)
        pairs = tuple(comparisons(guesses, [len(one) for one in lists.lists]))
        names = tuple(one.name.rpartition("/")[2] for one in lists.lists)
        found[folder.name] = Strangers(lists, names, guesses, pairs, Groups(lists.images))
    return found


def _counts(found: GroupResult) -> tuple[str, tuple[int, int], int, tuple[int, int]]:
    return found.verdict, found.groups, found.both, found.lines


@real_files("strangers")
def check_every_file_is_read_and_no_list_repeats_an_image(strangers: dict[str, Strangers]) -> None:
    assert {name: len(one.lists) for name, one in strangers.items()} == {
        "chexnet": 3, "cocotasks": 28, "covidnet": 6, "jigendg": 28, "mislas": 3, "monodepth": 9, "openmibood": 68,
        "taco": 1,
    }  # fmt: skip
    assert {name: one.repeats() for name, one in strangers.items()} == dict.fromkeys(strangers, 0)
    assert sum(len(one) for one in strangers["openmibood"].lists.lists) == 308_883


@real_files("strangers")
def check_ten_of_jigendg_s_pairs_are_one_file_and_four_are_sound(strangers: dict[str, Strangers]) -> None:
    found = strangers["jigendg"]
    assert found.images.root == "/home/fmc/data"
    office = [f"{name}{size}" for name in ("amazon", "dslr", "webcam") for size in ("", "10")]
    same = {(f"{one}_train", f"{one}_test") for one in ["art_painting", "cartoon", "photo", "sketch", *office]}
    sound = {(f"{one}_train", f"{one}_test") for one in ("CALTECH", "LABELME", "PASCAL", "SUN")}
    assert found.compared() == same | sound
    assert found.sharing(("bytes",)) == found.sharing() == same
    assert found.between() == {}
    for one, two in sorted(same | sound):
        assert found.grouped(one, two).verdict == "undecidable"
    # By the last folder and the name, 958 of 958; that is a hint and no more.
    hint = found.images.strength(found.names.index("amazon10_train"), found.names.index("amazon_train"))
    assert (hint.strength, hint.images, hint.why) == ("hint", 958, "the last folder and the name")


@real_files("strangers")
def check_places_lt_repeats_nothing_and_shares_nothing(strangers: dict[str, Strangers]) -> None:
    found = strangers["mislas"]
    sizes = dict(zip(found.names, map(len, found.lists.lists), strict=True))
    assert sizes == {"Places_LT_train": 62_500, "Places_LT_test": 36_500, "ImageNet_LT_test": 50_000}
    assert found.compared() == {("Places_LT_train", "Places_LT_test")}
    assert (found.sharing(), found.between()) == (set(), {})


@real_files("strangers")
def check_kitti_s_drives_stand_in_train_and_val_and_frames_do_not(strangers: dict[str, Strangers]) -> None:
    found = strangers["monodepth"]
    assert found.sharing() == set()
    counts = {pair: found.grouped(f"{pair[0]}_files", f"{pair[1]}_files") for pair in (
        ("eigen_train", "eigen_val"), ("eigen_train", "eigen_test"), ("eigen_val", "eigen_test"),
        ("kitti_train", "kitti_val"), ("kitti_train", "kitti_test"), ("kitti_val", "kitti_test"),
    )}  # fmt: skip
    assert {one.noun for one in counts.values()} == {"drive"}
    assert {pair: _counts(one) for pair, one in counts.items()} == {
        ("eigen_train", "eigen_val"): ("shared", (33, 33), 33, (22_600, 888)),
        ("eigen_train", "eigen_test"): ("disjoint", (33, 28), 0, (0, 0)),
        ("eigen_val", "eigen_test"): ("disjoint", (33, 28), 0, (0, 0)),
        ("kitti_train", "kitti_val"): ("shared", (32, 31), 31, (28_978, 1_159)),
        ("kitti_train", "kitti_test"): ("disjoint", (32, 29), 0, (0, 0)),
        ("kitti_val", "kitti_test"): ("disjoint", (31, 29), 0, (0, 0)),
    }
    assert found.grouped("cityscapes_val_files", "cityscapes_test_files").both == 0
    told = {tuple(name.removesuffix("_files") for name in pair): count for pair, count in found.between().items()}
    assert told == {
        ("eigen_train", "kitti_test"): 5_166, ("eigen_train", "kitti_train"): 16_756,
        ("eigen_train", "kitti_val"): 678, ("eigen_test", "kitti_train"): 330, ("eigen_val", "kitti_train"): 668,
        ("eigen_test", "kitti_val"): 17, ("eigen_val", "kitti_val"): 33, ("eigen_test", "kitti_test"): 350,
        ("eigen_val", "kitti_test"): 187,
    }  # fmt: skip


@real_files("strangers")
def check_one_patient_of_covidx_stands_on_both_sides(strangers: dict[str, Strangers]) -> None:
    found = strangers["covidnet"]
    assert found.sharing() == set()
    told = {version: found.grouped(f"train_COVIDx{version}", f"test_COVIDx{version}") for version in ("6", "7A", "9A")}
    assert {one.pattern for one in told.values()} == {"the column patient"}
    assert {version: _counts(one) for version, one in told.items()} == {
        "6": ("shared", (13_990, 174), 1, (1, 2)),
        "7A": ("disjoint", (14_923, 272), 0, (0, 0)),
        "9A": ("disjoint", (16_424, 378), 0, (0, 0)),
    }
    assert [(one.name, one.lines) for one in told["6"].examples] == [("ANON191", (1, 2))]
    between = found.between()
    assert between[("test_COVIDx6", "train_COVIDx9A")] == 9
    assert [between[pair] for pair in sorted(between) if all(name.startswith("test") for name in pair)] == [99, 16, 196]
    trains = {pair: count for pair, count in between.items() if {name[:4] for name in pair} == {"test", "trai"}}
    assert trains == {("test_COVIDx6", "train_COVIDx9A"): 9}


@real_files("strangers")
def check_chest_x_rays_of_a_patient_stand_on_one_side(strangers: dict[str, Strangers]) -> None:
    found = strangers["chexnet"]
    sizes = {"train_list": (78_468, 21_528), "val_list": (11_219, 3_090), "test_list": (22_433, 6_187)}
    assert found.sharing() == set()
    for one, two in sorted(found.compared()):
        told = found.grouped(one, two)
        assert (told.verdict, told.pattern) == ("disjoint", "subject or patient")
        assert (told.of, told.groups) == tuple(zip(sizes[one], sizes[two], strict=True))
    assert len(found.compared()) == 3


@real_files("strangers")
def check_taco_s_images_are_distinct_by_their_path_and_have_no_roles(strangers: dict[str, Strangers]) -> None:
    found = strangers["taco"]
    assert len(found.images.vocabulary) == 1_500
    assert (found.guesses[0].roles, found.pairs) == ((), ())


@real_files("strangers")
def check_no_train_list_of_coco_tasks_holds_an_image_of_a_test_list(strangers: dict[str, Strangers]) -> None:
    found = strangers["cocotasks"]
    assert found.compared() == {(f"imgIds_task_{n}_train", f"imgIds_task_{n}_test") for n in range(1, 15)}
    assert {pair.kind for pair in found.pairs} == {"family"}
    assert found.sharing() == set()
    assert all(one.rpartition("_")[2] == two.rpartition("_")[2] for one, two in found.between())
    for role, images in (("train", 30_304), ("test", 9_505)):
        lists = [one.unique.tolist() for one in found.lists.lists if one.name.endswith(role)]
        assert len(set().union(*lists)) == images


@real_files("strangers")
def check_openmibood_s_overlaps_are_parts_of_one_role(strangers: dict[str, Strangers]) -> None:
    found = strangers["openmibood"]
    assert found.sharing() == set()
    between = found.between()
    assert len(between) == 25
    assert all(one[:5] == two[:5] == "valid" for one, two in between)
    unions = {
        "midog_csid": (302, 228), "midog_near": (300, 1_334, 1_210, 1_228, 582, 111, 573), "midog_far": (205, 209),
        "oasis3_near": (44, 126, 147), "oasis3_csid": (10, 65), "oasis3_far": (2, 10), "phakir_csid": (97, 120),
        "phakir_near": (8_016, 40, 250), "phakir_far": (100, 100),
    }  # fmt: skip
    for name, parts in unions.items():
        held = [count for pair, count in between.items() if f"valid_{name}" in pair]
        assert sorted(held) == sorted(parts)
        assert sum(held) == found.count(f"valid_{name}", f"valid_{name}")


@real_files("strangers")
def check_openmibood_s_subjects_videos_and_slides(strangers: dict[str, Strangers]) -> None:
    found = strangers["openmibood"]
    for name, sizes, noun in (("oasis3", (848, 177, 181), "subject"), ("phakir", (4, 1, 1), "video"),
                              ("midog", (40, 5, 5), "slide")):  # fmt: skip
        train, valid, test = (f"{role}_{name}" for role in ("train", "valid", "test"))
        told = [found.grouped(*pair) for pair in ((train, valid), (train, test), (valid, test))]
        assert [(one.verdict, one.noun) for one in told] == [("disjoint", noun)] * 3
        assert [one.groups for one in told] == [sizes[:2], (sizes[0], sizes[2]), sizes[1:]]
    subjects = {
        ("train_oasis3", "test_oasis3_ct_near"): (551, (551, 884)),
        ("test_oasis3", "test_oasis3_ct_near"): (113, (113, 179)),
        ("train_oasis3", "test_oasis3_t2w_csid"): (446, (446, 462)),
        ("test_oasis3", "test_oasis3_t2w_csid"): (34, (34, 35)),
        ("test_oasis3", "valid_oasis3_t2w_csid"): (62, (62, 65)),
        ("train_oasis3", "valid_oasis3_ct_near"): (97, (97, 103)),
        ("train_oasis3", "test_oasis3_scanner_csid"): (0, (0, 0)),
    }
    told_subjects = {pair: found.grouped(*pair) for pair in subjects}
    assert {pair: (one.both, one.lines) for pair, one in told_subjects.items()} == subjects
    parts = {(found.names[pair.a], found.names[pair.b]) for pair in found.pairs}
    assert all(pair in parts or pair[::-1] in parts for pair in subjects)
    smoke = [found.grouped("train_phakir", f"test_phakir_{name}_smoke_csid") for name in ("heavy", "medium")]
    assert [(one.both, one.lines[1], one.of[1]) for one in smoke] == [(4, 737, 891), (4, 681, 822)]
    # Another dataset numbers its videos too.
    assert found.grouped("train_phakir", "test_phakir_cholec_near").verdict == "undecidable"
