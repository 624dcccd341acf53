"""Facts of the papers and data sets, on the lists that the repository holds: nothing but its own files is needed."""

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

MANIFESTS = Path(__file__).resolve().parents[1] / "manifests"
REMOVED = """
25593  41488  42888  49091  58636  64574  98497  101022 121153 127135 173183 176701 198915 200152 226111 228771
240767 260657 261796 267946 268996 270386 278006 308391 310622 312549 320706 330554 344611 370999 374727 382734
402096 404601 447789 458790 461275 476491 477118 481404 502910 514540 528977 536343 542073 550939 556498 560371
"""
"""The 48 images of val2017 without annotation (open-world specification, 2.4)."""
VEHICLES = (
    "Ambulance, Cart, Bicycle, Bus, Snowmobile, Golf cart, Motorcycle, Segway, Tank, Train, Truck, Unicycle, "
    "Limousine, Van, Taxi, Wheelchair, Barge, Gondola, Canoe, Jet ski, Submarine, Helicopter, Airplane, Rocket"
)


def ids(name: str, part: str) -> list[str]:
    return (MANIFESTS / name / "1.0.0" / "ids" / f"{part}.txt").read_text(encoding="utf-8").split()


def header(name: str) -> Any:
    return json.loads((MANIFESTS / name / "1.0.0" / "manifest.json").read_text(encoding="utf-8"))


def ranked(texts: list[str], salt: str) -> list[str]:
    return sorted(texts, key=lambda one: sha256((salt + one).encode()).digest())


def test_voc2007_test_has_4952_images_wherever_it_is_listed() -> None:
    closed = ids("elephant/val2017", "closed")
    assert (len(closed), len(set(closed))) == (4952, 4952)
    numbers = [int(one.removeprefix("voc2007:")) for one in closed]
    # VOC2007 has the images 1 to 9963, half of them for training.
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1], 9963 - len(numbers)) == (1, 9963, 5011)
    assert closed == ids("elephant/train2017", "closed")
    mixed = ids("owod/m-owodb", "t1-test")
    assert sorted(one for one in mixed if one.startswith("voc2007:")) == closed
    # ORE's list as published: 943 images of COCO stand twice, 92 three times.
    assert (len(mixed), len(set(mixed))) == (10_246, 9_119)
    times = Counter(Counter(mixed).values())
    assert (times[2], times[3]) == (943, 92)


def test_969_images_of_val2017_are_921_annotated_ones_and_the_48_without_annotation() -> None:
    wilderness = ids("elephant/val2017", "wilderness")
    annotated = set(ids("owod/reowod", "t1-test"))
    removed = {f"coco:{int(number):012d}" for number in REMOVED.split()}
    assert (len(wilderness), len(annotated), len(removed)) == (969, 4952, 48)
    assert len(annotated & set(wilderness)) == 921
    assert set(wilderness) - annotated == removed
    assert ids("elephant/val2017", "wr0.1-hash") == sorted(ranked(wilderness, "elephant/wilderness-ratio")[:495])


def test_every_open_world_benchmark_tests_on_the_annotated_images_of_val2017() -> None:
    tests = [ids(f"owod/{name}", f"t{task}-test") for name in ("reowod", "s-owodb") for task in (1, 2, 3, 4)]
    assert all(one == tests[0] for one in tests)
    mixed = ids("owod/m-owodb", "t1-test")
    of_coco = {one for one in mixed if one.startswith("coco:")}
    assert len(of_coco) == 4167
    assert of_coco < set(tests[0])
    # Every image without a class of VOC has a class of a later task.
    assert set(ids("elephant/val2017", "wilderness")) & set(tests[0]) < of_coco


def test_the_rules_of_vos_leave_969_and_1914_images() -> None:
    voc, bdd = (ids(f"findmeifyoucan/{pair}", "coco-rule") for pair in ("voc", "bdd"))
    assert voc == ids("elephant/val2017", "wilderness")
    assert len(bdd) == 1914
    assert {f"coco:{int(number):012d}" for number in REMOVED.split()} <= set(bdd)


@pytest.mark.parametrize(
    ("name", "classes", "digests"),
    [
        ("p1", (116, 67, 166), ("448d79f43f35f2b3", "6f0446ede36c9273", "6bed3cb6671c83f0")),
        ("p2", (30, 31, 55), ("706d5c418d470419", "83b4a84a0d53fde9", "95144e3e66a9f710")),
        ("p3", (151, 97, 164), ("066fd59bffc23cc9", "4a6817fec7d5576f", "67cafd22f5392bfc")),
    ],
)
def test_classes_of_imagenet_are_those_of_the_printed_tables(
    name: str, classes: tuple[int, ...], digests: tuple[str, ...]
) -> None:
    """Digests of the lists of Tables 3 to 5 of the paper, typed off and sorted: one wnid a line."""
    roles = ("known", "negative", "unknown")
    listed = [
        sorted(one["name"] for one in header(f"imagenet/{name}")["classes"] if one["role"] == role) for role in roles
    ]
    assert tuple(map(len, listed)) == classes
    found = [sha256("".join(f"{one}\n" for one in wnids).encode()).hexdigest() for wnids in listed]
    assert [one[:16] for one in found] == list(digests)
    assert len(ids(f"imagenet/{name}", "test")) == 50 * sum(classes)


def test_p2_s_training_images_are_split_by_class() -> None:
    train, val = ids("imagenet/p2", "train"), ids("imagenet/p2", "val")
    assert (len(train), len(val)) == (60_689, 15_173)
    assert not set(train) & set(val)
    sizes, kept = (Counter(one[9:18] for one in listed) for listed in ([*train, *val], train))
    classes = {one["name"] for one in header("imagenet/p2")["classes"] if one["role"] != "unknown"}
    assert set(sizes) == classes
    assert max(sizes.values()) == 1300
    # 80 % of each class, up to the one image by which shares are evened out.
    assert all(abs(kept[one] - 0.8 * n) < 1 for one, n in sizes.items())
    # Table 1: 28,895 and 7,224 known images, 31,794 and 7,949 negative ones.
    known = {one["name"] for one in header("imagenet/p2")["classes"] if one["role"] == "known"}
    assert [sum(one[9:18] in known for one in listed) for listed in (train, val)] == [28_895, 7_224]


def quarters(items: list[str]) -> list[list[str]]:
    """Return four parts by the order of sha256(seed:item), each sorted: the class splits of OSOD-III."""
    order = sorted(items, key=lambda one: sha256(f"100:{one}".encode()).hexdigest())
    size = len(items) // 4
    return [sorted(order[k * size : (k + 1) * size]) for k in range(4)]


def test_cub_is_cut_into_four_parts_of_50_species() -> None:
    parts = quarters([f"{number:03d}" for number in range(1, 201)])
    seen: Counter[str] = Counter()
    for case, part in enumerate(parts, 1):
        classes = {role: set() for role in ("known", "unknown")}  # type: dict[str, set[str]]
        for one in header(f"osod3/cub-{case}")["classes"]:
            classes[one["role"]].add(one["aliases"][0][:3])
        assert sorted(classes["unknown"]) == part
        assert len(classes["known"]) == 150
        train, val, test = (ids(f"osod3/cub-{case}", one) for one in ("train", "val", "test"))
        assert (len(test), test) == (5_794, ids("osod3/cub-1", "test"))
        assert not {*train, *val} & set(test)
        seen.update([*train, *val])
    # Every official training image trains or validates where its species is known: in three cases of four.
    assert (len(seen), set(seen.values())) == (5_994, {3})


@pytest.mark.parametrize(("superclass", "count"), [("animal", 96), ("vehicle", 24)])
def test_open_images_classes_are_cut_into_four_parts(superclass: str, count: int) -> None:
    rotations = [header(f"osod3/openimages-{superclass}-{one}")["classes"] for one in (1, 2, 3, 4)]
    members = sorted(one["aliases"][0] for one in rotations[0] if one["role"] in ("known", "unknown"))
    assert len(members) == count
    for classes, part in zip(rotations, quarters(members), strict=True):
        assert sorted(one["aliases"][0] for one in classes if one["role"] == "known") == part
    if superclass == "vehicle":
        printed = sorted(VEHICLES.split(", "))
        found = [one["name"] for one in rotations[0] if one["role"] in ("known", "unknown")]
        assert sorted(found, key=str.lower) == sorted(printed, key=str.lower)
