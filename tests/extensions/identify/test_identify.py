"""`identify`: a list is told through every disguise, counted where it is available, and unknown where it is."""

import csv
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.cli import main
from curation.core.errors import MissingFileError, SourceError, UsageError
from curation.extensions.identify.index import SKETCH, index_bytes, make_index, packaged_index, read_index
from curation.extensions.identify.run import Identification, Identified, identify
from curation.manifest.manifest import packaged_manifests
from tests.real_files import real_files

DECLARATION = """
[[source]]
name = "one"
benchmark = "First"
version = "org/first abc1234"
licence = "MIT"
folder = "first"
lists = [
  { file = "train.txt", part = "train" },
  { file = "test.txt", part = "test", defects = ["three images stand twice"], successor = "nothing" },
  { file = "photos.txt", part = "photos" },
  { file = "parts/*.txt", part = "part {stem}" },
]

[[source]]
name = "two"
benchmark = "Second"
folder = "second"
lists = [
  { file = "train.txt", part = "train" },
  { file = "same.txt", name = "renamed", part = "the first one's train" },
  { file = "folders.txt", part = "images in folders" },
]
"""
HEAD = '[[source]]\nname="x"\nbenchmark="X"\n'
TRAIN = [f"{n * 7919 % 10**6:012d}" for n in range(1, 4001)]
TEST = [f"2008_{n:06d}" for n in range(1, 301)] + [f"2008_{n:06d}" for n in (3, 5, 7)]
PHOTOS = [f"photos/c{n % 40}/IMG_{n * 31:07d}.JPEG {n % 40}" for n in range(1, 2501)]
A, B = [f"a_{n}" for n in range(1500)], [f"b_{n}" for n in range(1200)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lists")
    written = {
        "first/train.txt": TRAIN,
        "first/test.txt": TEST,
        "first/photos.txt": PHOTOS,
        "first/parts/a.txt": A,
        "first/parts/b.txt": B,
        "second/train.txt": [f"{n:06d}" for n in range(1, 2001)],
        "second/same.txt": TRAIN,
        "second/folders.txt": [f"x/class_{n}/img_{k}.png" for n in range(60) for k in range(30)],
        "second/classes.txt": ["cat", "hot dog"],
    }
    for name, lines in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
    (folder / "lists.toml").write_text(DECLARATION)
    return folder


@pytest.fixture(scope="module")
def index(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "own.index"
    path.write_bytes(index_bytes(make_index(world).index))
    return path


def asked(path: Path, index: Path, lines: list[str] | str | bytes, **options: Any) -> Identified:
    text = lines if isinstance(lines, bytes) else (lines if isinstance(lines, str) else "\n".join(lines)).encode()
    path.write_bytes(text)
    (one,) = identify(path, index=index, **options).lists
    return one


def known_lists(folder: Path, **lists: list[str]) -> tuple[Path, Path]:
    """Write lists into a folder, and their index beside it."""
    known, own = folder / "known", folder / "own.index"
    known.mkdir()
    for name, lines in lists.items():
        (known / f"{name}.txt").write_text("\n".join(lines))
    own.write_bytes(index_bytes(make_index(known).index))
    return known, own


def shuffled(lines: list[str]) -> list[str]:
    return random.Random(1).sample(lines, len(lines))


def images(ids: list[str]) -> list[dict[str, Any]]:
    return [{"id": n, "file_name": f"{one}.jpg"} for n, one in enumerate(ids)]


DISGUISES: Mapping[str, Callable[[list[str]], Any]] = {
    "as it is": lambda ids: "".join(f"{one}\n" for one in ids),
    "no final line feed": lambda ids: ids,
    "shuffled": shuffled,
    "repeated": lambda ids: [*ids, *ids[:50]],
    "returns": lambda ids: "\r\n".join(ids),
    "byte order mark": lambda ids: "\ufeff" + "\n".join(ids),
    "suffix": lambda ids: [f"{one}.jpg" for one in ids],
    "suffix in capitals": lambda ids: [f"{one}.JPEG" for one in ids],
    "folder": lambda ids: [f"data/val2014/{one}.jpg" for one in ids],
    "backslashes": lambda ids: [f"D:\\data\\{one}.png" for one in ids],
    "coco prefix": lambda ids: [f"COCO_val2014_{one}.jpg" for one in ids],
    "absolute": lambda ids: [f"/data//coco/{one}.jpg" for one in ids],
    "climbing": lambda ids: [f"../../{one}.jpg" for one in ids],
    "blanks and empty lines": lambda ids: "\n\n".join(f"  {one}\t" for one in ids),
    "labels": lambda ids: [f"coco/{one}.jpg {n % 9}" for n, one in enumerate(ids)],
    "voc labels": lambda ids: [f"{one}  {n % 2 * 2 - 1}" for n, one in enumerate(ids)],
    "namespaces": lambda ids: [f"coco:{one}" for one in ids],
    "array": json.dumps,
    "coco json": lambda ids: json.dumps({"images": images(ids), "categories": []}),
    "groups": lambda ids: json.dumps({f"n{n:08d}": ids[n::70] for n in range(70)}),
    "table": lambda ids: ["index,image_location,decision", *(f"{n},x/{one}.png,o" for n, one in enumerate(ids))],
    "xml": lambda ids: [f"Annotations/{one}.xml" for one in ids],
}  # fmt: skip
LEVELS = {"as it is": 1, "shuffled": 3, "repeated": 4, "groups": 3}


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguised_list_is_told(tmp_path: Path, index: Path, name: str) -> None:
    one = asked(tmp_path / "list.txt", index, DISGUISES[name](TRAIN))
    assert one.verdict == "identified"
    assert [match.known.name for match in one.best] == ["one/train", "two/renamed"]
    assert one.best[0].level == LEVELS.get(name, 2)


def test_zeros_before_numbers_are_a_hint(tmp_path: Path, index: Path) -> None:
    one = asked(tmp_path / "list.txt", index, [str(int(text)) for text in TRAIN])
    assert (one.verdict, one.matches[0].level) == ("hint", 6)
    assert "numbers of several lengths" in one.matches[0].note
    assert identify(tmp_path / "list.txt", index=index).ok


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_foreign_lists_are_unknown(tmp_path: Path, index: Path, seed: int) -> None:
    draw = random.Random(seed)
    forms = (
        "{:08x}",
        "{:09d}",
        "frame_{:05d}",
        "foreign/{:06d}.jpg 3",
        "n0{:07d}_77",
        "{:016d}",
        "v{:d}",
        "{:x}.png",
        "s{:d}_{:d}",
        "IMG{:d}",
    )
    lines = [forms[seed].format(draw.randrange(10**8), seed) for _ in range(3000)]
    one = asked(tmp_path / "t1_train.txt", index, lines)
    assert (one.verdict, one.nearest) == ("unknown", ())


def test_short_numbers_that_meet_by_chance_name_no_relative(tmp_path: Path, index: Path, world: Path) -> None:
    lines = [f"{n:06d}" for n in range(1990, 8000)]
    one = asked(tmp_path / "list.txt", index, lines, lists=world)
    assert (one.verdict, one.nearest) == ("unknown", ())
    assert [relation.shared for relation in one.relations if relation.known.name == "two/train"] == [11]


@pytest.mark.parametrize("form", ["{:08d}", "{:012d}", "{}", "class/{:08d}.jpg"])
def test_a_bare_counter_has_no_relatives(tmp_path: Path, form: str) -> None:
    drawn = random.Random(3)
    sizes = {"sky": 185, "road": 900, "long": 4000}
    numbers = {name: sorted(drawn.sample(range(10_000), count)) for name, count in sizes.items()}
    known, own = known_lists(tmp_path, **{name: [form.format(n) for n in held] for name, held in numbers.items()})
    for lists in ((), known):
        for stop, step in ((10_000, 1), (4000, 1), (10_000, 3)):
            lines = [form.format(n) for n in range(0, stop, step)]
            one = asked(tmp_path / "list.txt", own, lines, lists=lists)
            assert (one.verdict, one.nearest) == ("unknown", ())
    assert any("its names are bare numbers" in text for text in one.findings)
    # Numbers that do not count on, all of them in a list that holds one in ten: that is no chance.
    part = (known / "road.txt").read_text().split()[:300]
    one = asked(tmp_path / "list.txt", own, part)
    assert (one.nearest[0].kind, one.nearest[0].known.name, one.nearest[0].exact) == ("part of", "road.txt", True)


def numbered(folder: Path) -> Path:
    """Make an index of a list of numbers and one of names with numbers, held whole."""
    folder.mkdir()
    drawn = random.Random(5).sample(range(600_000), 60_000)
    (folder / "train.txt").write_text("".join(f"{n:012d}\n" for n in drawn))
    (folder / "val.txt").write_text("".join(f"ILSVRC2012_val_{n:08d}.JPEG {n % 9}\n" for n in range(1, 20_001)))
    (folder / "lists.toml").write_text(HEAD + 'numbered=true\nlists=[{file="train.txt"},{file="val.txt"}]')
    path = folder / "own.index"
    path.write_bytes(index_bytes(make_index(folder).index))
    return path


def test_numbered_lists_are_counted_without_their_files(tmp_path: Path) -> None:
    own = numbered(tmp_path / "known")
    assert index_bytes(read_index(own)) == own.read_bytes()
    train = (tmp_path / "known/train.txt").read_text().split()
    one = asked(tmp_path / "list.txt", own, [*train[:500], "000000600001"]).nearest[0]
    assert (one.kind, one.exact, one.shared, one.missing, one.extra) == ("mostly in", True, 500, 59_500, 1)
    assert one.extra_examples == ("000000600001",)
    one = asked(tmp_path / "list.txt", own, train[:500]).nearest[0]
    assert (one.kind, one.exact, one.shared, one.as_numbers) == ("part of", True, 500, False)
    # The same numbers as a table or a COCO tool may write them.
    answer = asked(tmp_path / "list.txt", own, [str(int(text)) for text in train[:500]])
    one = answer.nearest[0]
    assert (answer.verdict, one.kind, one.exact, one.shared, one.as_numbers) == ("related", "part of", True, 500, True)
    assert "read as numbers without the zeros before them" in "\n".join(answer.lines())
    # Others of the range: one in ten is there by chance.
    others = sorted(set(range(600_000)) - {int(text) for text in train[:50_000]})
    drawn = random.Random(6).sample(others, 3000)
    assert asked(tmp_path / "list.txt", own, [str(n) for n in drawn]).nearest == ()


def test_images_made_from_others_are_not_called_a_part_of_these(tmp_path: Path) -> None:
    own = numbered(tmp_path / "known")
    names = [f"ILSVRC2012_val_{n:08d}.JPEG" for n in range(1, 20_001)]
    for folder in ("", "val/", "val/n01440764/", "imagenet_1k/val/", "/home/me/ILSVRC2012/ILSVRC2012_img_val/"):
        one = asked(tmp_path / "list.txt", own, [folder + name for name in names[:4000]])
        assert (one.verdict, one.nearest[0].kind, one.nearest[0].shared) == ("related", "part of", 4000), folder
        assert asked(tmp_path / "list.txt", own, [folder + name for name in names]).verdict == "identified"
    # Folders of other names tell nothing of these.
    assert asked(tmp_path / "list.txt", own, ["fog/1.jpg", *names[:4000]]).nearest[0].kind == "mostly in"
    for folder in ("imagenet_c/fog/3/", "fog/3/n01440764/", "imagenet-c/val/", "D:\\fog\\"):
        one = asked(tmp_path / "list.txt", own, [folder + name for name in names[:4000]])
        assert (one.verdict, one.nearest[0].kind) == ("hint", "named like"), folder
        assert "part of" not in "\n".join(one.lines())
        one = asked(tmp_path / "list.txt", own, [folder + name for name in names])
        assert (one.verdict, one.best[0].level) == ("hint", 7), folder


@pytest.mark.parametrize(
    ("lines", "message"),
    [("1\n22\n", "of the same length"), ("x_1\ny_2\n", "of the same length"), ("900000000000\n", "too large")],
)
def test_what_no_set_of_bits_can_hold(tmp_path: Path, lines: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(lines)
    (tmp_path / "lists.toml").write_text(HEAD + 'numbered=true\nlists=[{file="a.txt"}]')
    with pytest.raises(UsageError, match=message):
        make_index(tmp_path)


def test_lists_that_hold_an_equal_one_among_more_are_told_after_it(tmp_path: Path) -> None:
    known, own = known_lists(tmp_path, a=A, more=[*A, *B], less=A[:900], beside=[*A[300:], *B])
    for lists, kind in (((), "mostly in"), (known, "part of")):
        one = asked(tmp_path / "a.txt", own, A, lists=lists)
        assert (one.verdict, [match.known.name for match in one.best]) == ("identified", ["a.txt"])
        assert [(found.kind, found.known.name) for found in one.nearest] == [(kind, "more.txt")]
    _, first, second = (line for line in one.lines() if not line.startswith("    "))
    assert "[a.txt]: the same bytes" in first
    assert second.startswith("  also is part of known [more.txt]: all 1,500 images here, 1,200 of its 2,700 missing")


def test_a_list_without_some_images_is_counted_where_the_list_is_available(
    tmp_path: Path, index: Path, world: Path
) -> None:
    lines = [*TRAIN[:100], *TRAIN[130:]]
    about = asked(tmp_path / "less.txt", index, lines).nearest[0]
    # By a sketch alone it is never said to be a part.
    assert about.kind in ("near", "mostly in")
    assert (about.known.name, about.exact) == ("one/train", False)
    assert (about.missing, about.extra) == (30, 0)
    counted = asked(tmp_path / "less.txt", index, lines, lists=world).nearest[0]
    assert (counted.kind, counted.exact, counted.shared, counted.missing, counted.extra) == (
        "part of",
        True,
        3970,
        30,
        0,
    )
    assert counted.missing_examples == tuple(sorted(TRAIN[100:130])[:3])
    text = identify(tmp_path / "less.txt", index=index, lists=world).text()
    assert "is part of First, train [one/train]: all 3,970 images here, 30 of its 4,000 missing" in text
    assert "about" not in text


def test_stems_that_repeat_are_compared_with_their_folder(tmp_path: Path, index: Path) -> None:
    lines = [f"y/class_{n}/img_{k}.png" for k in range(30) for n in range(60)]
    one = asked(tmp_path / "r.txt", index, [*lines, lines[0]])
    assert (one.best[0].known.name, one.best[0].level) == ("two/folders", 5)
    assert any("a stem is not an id here" in text for text in one.findings)
    # The same names alone do not make it the same list.
    other = asked(tmp_path / "r.txt", index, [f"img_{k}.png" for k in range(30)])
    assert other.verdict == "unknown"


def test_labels_are_compared_apart(tmp_path: Path, index: Path) -> None:
    same = asked(tmp_path / "p.txt", index, [line.replace("photos/", "p/") for line in PHOTOS])
    assert (same.best[0].known.name, same.best[0].labels) == ("one/photos", "same")
    changed = [f"{line.rsplit(' ', 1)[0]} 0" if n < 7 else line for n, line in enumerate(PHOTOS)]
    other = asked(tmp_path / "p.txt", index, changed)
    assert (other.best[0].level, other.best[0].labels) == (2, "differ")
    none = asked(tmp_path / "p.txt", index, [line.rsplit(" ", 1)[0] for line in PHOTOS])
    assert none.best[0].labels == "only there"


def test_a_name_is_a_claim(tmp_path: Path, index: Path) -> None:
    right = asked(tmp_path / "train.txt", index, TRAIN)
    assert right.findings == ("it is called train: it is the list of First, not that of Second",)
    wrong = asked(tmp_path / "photos.txt", index, TRAIN)
    assert "it is called photos like a list of First, and is another: First and Second" in wrong.findings
    foreign = asked(tmp_path / "renamed.txt", index, ["x1", "x2"])
    assert foreign.findings == ("it is called renamed like a list of Second, and is not equal to it",)
    assert asked(tmp_path / "anything.txt", index, TRAIN).findings == ()


def test_repeats_that_differ_are_told(tmp_path: Path, index: Path) -> None:
    one = asked(tmp_path / "list.txt", index, sorted(set(TEST)))
    assert (one.best[0].known.name, one.best[0].level) == ("one/test", 4)
    assert one.best[0].note == "300 lines here, 303 there: repeats differ"
    text = "\n".join(one.lines())
    # Not said as if of the list that was asked about, which has no repeats.
    assert "known of the published list: three images stand twice" in text
    assert "see nothing" in text


def test_files_of_several_lists_and_of_classes(tmp_path: Path, index: Path) -> None:
    (tmp_path / "splits.json").write_text(json.dumps({"train": TRAIN, "val": ["000001x", "000002x"]}))
    (tmp_path / "classes.txt").write_text("cat\nhot dog\n")
    found = identify(tmp_path / "splits.json", tmp_path / "classes.txt", index=index)
    assert [(one.key, one.verdict) for one in found.lists] == [
        ("train", "identified"),
        ("val", "unknown"),
        ("", "unknown"),
    ]
    assert not found.ok
    assert "no list of images (class names)" in found.text()


def test_the_same_lists_make_the_same_bytes(world: Path, index: Path, tmp_path: Path) -> None:
    made = make_index(world)
    assert made.undeclared == ("second/classes.txt",)
    assert index_bytes(made.index) == index.read_bytes()
    read = read_index(index)
    assert read.lists == tuple(sorted(made.index.lists, key=lambda one: one.name))
    assert [len(one) for one in read.sketches] == [min(SKETCH, one.images) for one in read.lists]
    assert index_bytes(read) == index.read_bytes()
    names = {one.name: one.title for one in read.lists}
    assert names["one/parts/a"] == "First, part a"


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("[[source]\n", UsageError, "malformed"),
        ('[[source]]\nname = "x"\n', UsageError, "malformed"),
        (HEAD + 'lists=[{file="absent.txt"}]', MissingFileError, "does not exist"),
        (HEAD + 'lists=[{file="no/*.txt"}]', MissingFileError, "does not exist"),
        (HEAD + 'lists=[{file="second/classes.txt"}]', UsageError, "not a list of images"),
        (HEAD + 'lists=[{file="../x.txt"}]', curation.CurationError, "leads"),
        (HEAD + 'lists=[{file="../*.txt"}]', curation.CurationError, "leads"),
        (HEAD + 'lists=[{file="/*.txt"}]', curation.CurationError, "leads"),
        (HEAD + 'lists=[{file="first/test.txt"},{file="first/test.txt"}]', UsageError, "one name"),
        ("", UsageError, "No list of images"),
        ("a = " + "[" * 5000, UsageError, "malformed"),
        ("a = " + "9" * 5000, UsageError, "malformed"),
        (HEAD + f'lists=[{{file="{"a" * 5000}.txt"}}]', MissingFileError, "does not exist"),
    ],
)  # fmt: skip
def test_declarations_that_cannot_serve(
    world: Path, tmp_path: Path, text: str, error: type[Exception], told: str
) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(error, match=told):
        make_index(world, tmp_path / "own.toml")


def test_indexes_that_cannot_be_read(tmp_path: Path, index: Path, world: Path) -> None:
    data = index.read_bytes()
    for name, content in {"other": b"PK", "cut": data[:-8], "changed": data[:-1] + b"?", "head": data[:60]}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError):
            identify(world / "first/test.txt", index=tmp_path / name)
    with pytest.raises(MissingFileError):
        identify(world / "first/test.txt", index=tmp_path / "absent")
    with pytest.raises(MissingFileError):
        identify(tmp_path / "absent.txt")
    with pytest.raises(UsageError, match="No list"):
        identify()


def test_command(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["identify", str(world / "first/test.txt"), "--lists", str(world), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["lists"][0]["verdict"] == "identified"
    assert told["lists"][0]["matches"][0]["name"] == "one/test"
    assert told["lists"][0]["digests"]["distinct_stems"] == 300
    assert main(["identify"]) == 2


def test_from_python(world: Path, index: Path) -> None:
    found = curation.identify(world / "first/test.txt", world / "first/parts", index=index)
    assert isinstance(found, Identification)
    assert "<Identification of 3, test.txt: one/test" in repr(found)
    assert [match.level for one in found.lists for match in one.best] == [1, 1, 1]


def test_the_packaged_index_knows_the_packaged_manifests() -> None:
    index = read_index(packaged_index())
    assert len(index) >= 180
    from_manifests = [one for one in index.lists if one.manifest]
    assert len(from_manifests) >= 25
    one = packaged_manifests() / "owod/m-owodb/1.0.0/ids/t1-test.txt"
    (found,) = identify(one).lists
    assert {match.known.name for match in found.matches} >= {
        "owod/m-owodb@1.0.0#t1-test", "ore/all_task_test", "prob/TOWOD/owod_all_task_test",
    }  # fmt: skip


def test_the_packaged_index_states_what_stems_and_numbers_cannot_tell() -> None:
    known = {one.name: one for one in read_index(packaged_index()).lists}
    photos = known["openood/test_imagenet_r"]
    assert (photos.lines, photos.stems, photos.parent_stems, photos.images) == (30_000, 970, 30_000, 30_000)
    # Without their zeros, ids of VOC and of COCO become one number.
    mixed = known["ore/all_task_test"]
    assert (mixed.lines, mixed.stems, mixed.numbers) == (10_246, 9_119, 9_058)
    assert known["openood/test_imagenet_o"].stems == 2_000


def test_lists_of_manifests_are_counted_without_further_files(tmp_path: Path) -> None:
    ids = (packaged_manifests() / "elephant/val2017/1.0.0/ids/wilderness.txt").read_text().split()
    (tmp_path / "list.txt").write_text("\n".join(one.removeprefix("coco:") for one in ids[5:]))
    (found,) = identify(tmp_path / "list.txt").lists
    mine = next(one for one in found.nearest if one.known.name == "elephant/val2017@1.0.0#wilderness")
    assert (mine.kind, mine.exact, mine.missing, mine.extra) == ("part of", True, 5, 0)


def test_a_counter_of_eight_digits_does_not_hold_ninco(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("".join(f"{n:08d}\n" for n in range(10_000)))
    (one,) = identify(tmp_path / "list.txt").lists
    assert (one.verdict, one.nearest) == ("unknown", ())


@real_files("atlas_lists")
def check_strangers_lists_are_told_without_false_relatives(shared: Path) -> None:
    strangers = shared / "data/strangers"
    (places,) = identify(strangers / "mislas/Places_LT_train.txt").lists
    assert (places.verdict, places.nearest) == ("unknown", ())
    (test,) = identify(strangers / "mislas/ImageNet_LT_test.txt").lists
    assert [match.known.name for match in test.best] == ["ilsvrc2012/val"]
    tasks = {Path(one.name).stem: one for one in identify(strangers / "cocotasks/image_lists").lists}
    assert len(tasks) == 28
    for task in range(1, 15):
        found = {}
        for part in ("train", "test"):
            one = tasks[f"imgIds_task_{task}_{part}"]
            found[part] = {of.known.name: of for of in one.nearest if of.known.name.startswith("coco/")}
            assert not [of for of in one.nearest if of.known.name.startswith(("voc", "ninco"))]
        train = found["train"]["coco/train2017"]
        assert (train.kind, train.exact, train.shared, train.as_numbers) == ("part of", True, 3600, True)
        seen, unseen = found["test"]["coco/train2017"], found["test"]["coco/val2017"]
        assert (seen.kind, seen.exact, seen.shared + unseen.shared) == ("mostly in", True, 900)
        assert 766 <= seen.shared <= 804


@real_files("atlas_lists")
def check_the_index_is_made_again_from_the_published_files(shared: Path) -> None:
    index = make_index(shared / "data", packaged_index().with_name("lists.toml")).index
    assert index_bytes(index) == packaged_index().read_bytes()
    published = csv.DictReader((shared / "data/atlas/digests.csv").read_text().splitlines())
    stems = {row["file"]: row["sha256_stems"] for row in published}
    known = {one.file: one.sha256_stems for one in index.lists if not one.key}
    assert len(known.keys() & stems.keys()) > 100
    assert all(known[file] == stems[file] for file in known.keys() & stems.keys())


@real_files("atlas_lists")
def check_published_lists_are_told(shared: Path, tmp_path: Path) -> None:
    data = shared / "data"
    # The broken list of OpenDet.
    copy = tmp_path / "voc_coco_15000_test.txt"
    copy.write_bytes((data / "owod/published/ore/t1_known_test.txt").read_bytes())
    copies = (
        "atlas/prob/TOWOD/owod_t3_train.txt",
        "owod/published/ore/t3_train.txt",
        "owod/published/owdetr/t3_train.txt",
    )
    sets = {name: f"atlas/openood/imagenet/test_{name}.txt" for name in ("textures", "ninco", "inaturalist")}
    names = (*copies, *sets.values(), "owod/published/reowod/t2_ft.txt", "atlas/rwd/Aerial/train.txt")
    found = dict(zip((*names, copy.name), identify(*(data / name for name in names), copy).lists, strict=True))

    def known(name: str) -> set[str]:
        return {match.known.name for match in found[name].matches}

    for name in copies:
        assert known(name) >= {"ore/t3_train", "owdetr/t3_train", "prob/TOWOD/owod_t3_train"}
    finetuning = found["owod/published/reowod/t2_ft.txt"]
    assert [match.known.name for match in finetuning.best] == ["reowod/t2_ft"]
    assert finetuning.findings == (
        "it is called t2_ft: it is the list of RE-OWOD (2022), not that of M-OWODB (ORE, CVPR 2021) and "
        "S-OWODB (OW-DETR, CVPR 2022)",
    )
    # OpenOOD's textures are ViM's with the order; its NINCO is NINCO's, its iNaturalist that of MOS.
    textures = found[sets["textures"]].matches
    assert [(match.level, match.known.name) for match in textures] == [(1, "openood/test_textures"), (2, "vim/texture")]
    assert "ninco/NINCO_OOD_classes.csv" in known(sets["ninco"])
    assert len(known(sets["inaturalist"])) == 2
    assert {"opendet/voc_coco_15000_test", "ore/t1_known_test"} <= known(copy.name)
    # 24 of DIOR's training numbers are numbers of val2017 too, without their zeros: no relative.
    dior = (data / "atlas/rwd/Aerial/train.txt").read_text().split()
    val2017 = {int(one) for one in (data / "coco/val2017_ids.txt").read_text().split()}
    assert sum(int(one.removesuffix(".jpg")) in val2017 for one in dior) == 24
    assert known("atlas/rwd/Aerial/train.txt") == {"rwd/Aerial/train"}


@real_files("atlas_lists")
def check_parts_of_published_lists(shared: Path, tmp_path: Path) -> None:
    openood = shared / "data/atlas/openood/imagenet"
    lines = [
        line for name in ("test", "val") for line in (openood / f"{name}_openimage_o.txt").read_text().splitlines()
    ]
    both = tmp_path / "both.txt"
    both.write_text("\n".join(lines))
    assert {match.known.name for match in identify(both).lists[0].matches} == {"vim/openimage_o"}
    # Less 30 of 49,000: about from the sketch, counted from the list.
    hard = (openood / "test_ssb_hard.txt").read_text().splitlines()
    less = tmp_path / "less.txt"
    less.write_text("\n".join(hard[:500] + hard[530:]))
    about = identify(less).lists[0].nearest[0]
    assert (about.known.name, about.exact, about.missing) == ("openood/test_ssb_hard", False, 30)
    assert about.kind in ("near", "mostly in")
    counted = identify(less, lists=openood).lists[0].nearest[0]
    assert (counted.kind, counted.exact, counted.shared, counted.missing) == ("part of", True, 48_970, 30)
    # SSB's files hold OpenOOD's near set.
    (ssb,) = identify(shared / "data/atlas/ssb/imagenet_21k_val_files.json").lists
    assert ssb.verdict == "identified"


@real_files("atlas_lists")
def check_labels_of_imagenet_o_and_names_of_imagenet_r(shared: Path, tmp_path: Path) -> None:
    openood = shared / "data/atlas/openood/imagenet"
    text = (openood / "test_imagenet_r.txt").read_text().splitlines()
    (tmp_path / "r.txt").write_text("\n".join(shuffled([*text, text[0]])))
    (one,) = identify(tmp_path / "r.txt").lists
    assert (one.best[0].known.name, one.best[0].level) == ("openood/test_imagenet_r", 5)
    lines = (openood / "val_imagenet.txt").read_text().splitlines()
    (tmp_path / "v.txt").write_text("\n".join(f"{line.rsplit(' ', 1)[0]} 0" for line in lines))
    (one,) = identify(tmp_path / "v.txt", lists=openood).lists
    assert one.best[0].labels == "differ"
