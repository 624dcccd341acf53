"""`split`: disjoint parts, whole groups, exact shares, whatever the order of the file; wrong inputs are errors."""

from __future__ import annotations

import collections
import hashlib
import json
import random
import re
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from PIL import Image

import curation
from curation.benchmarks.building import rebuild
from curation.benchmarks.rules.benchmark_file import read_benchmark_file
from curation.benchmarks.rules.split import assign, units_of
from curation.core.errors import CurationError, CurationWarning
from curation.manifest.manifest import Manifest
from tests.protocols.test_wilderness_rule import drawn
from tests.shell import Shell

SHARES = {"train": Fraction(7, 10), "val": Fraction(1, 10), "test": Fraction(1, 5)}
PARTS = "train=0.7,val=0.1,test=0.2"
NAMES = ["bolt", "nut", "gear", "washer"]


def plain_split(ids: list[str], shares: dict[str, Fraction], salt: str) -> dict[str, list[str]]:
    """Return the parts of ungrouped images in plain Python: largest remainders of the shares in the order of sha256."""
    ranked = sorted(ids, key=lambda image: hashlib.sha256((salt + image).encode()).digest())
    counts = {part: int(share * len(ids)) for part, share in shares.items()}
    rest = sorted(shares, key=lambda part: (-(shares[part] * len(ids) - counts[part]), list(shares).index(part)))
    for part in rest[: len(ids) - sum(counts.values())]:
        counts[part] += 1
    parts, start = {}, 0
    for part, count in counts.items():
        parts[part] = sorted(ranked[start : start + count])
        start += count
    return parts


@pytest.mark.parametrize("seed", range(60))
def test_properties_of_drawn_groups_and_strata(seed: int) -> None:
    """The parts are a partition; groups are whole; each stratum has its shares within one group; order has no say."""
    rng = random.Random(seed)
    n = rng.randint(3, 300)
    ids = [f"x:{row}" for row in range(n)]
    groups = [f"g{rng.randint(0, max(1, n // rng.randint(1, 8)))}" for _ in ids] if rng.random() < 0.6 else None
    stratum_of = {name: rng.randint(0, 4) for name in dict.fromkeys(groups or ids)}
    strata = [stratum_of[name] for name in groups or ids]

    def parts_of(order: list[int], kept: dict[str, int] | None = None) -> dict[str, int]:
        units = units_of([ids[row] for row in order], groups and [groups[row] for row in order])
        stratum, fixed = np.zeros(len(units.size), np.int64), np.full(len(units.size), -1)
        for place, row in enumerate(order):
            stratum[units.unit_of_image[place]] = strata[row]
            if kept and ids[row] in kept:
                fixed[units.unit_of_image[place]] = kept[ids[row]]
        part_of = assign(units, SHARES, salt="s", stratum=stratum, earlier=fixed if kept else None)
        return {ids[row]: int(part_of[units.unit_of_image[place]]) for place, row in enumerate(order)}

    made = parts_of(list(range(n)))
    assert set(made.values()) <= {0, 1, 2}
    shuffled = list(range(n))
    rng.shuffle(shuffled)
    assert parts_of(shuffled) == made
    if groups:
        homes = collections.defaultdict(set)
        for image, group in zip(ids, groups, strict=True):
            homes[group].add(made[image])
        assert all(len(parts) == 1 for parts in homes.values())
    for number in set(strata):
        rows = [row for row in range(n) if strata[row] == number]
        largest = max(collections.Counter((groups or ids)[row] for row in rows).values())
        for part, share in enumerate(SHARES.values()):
            # Within one image of the share by rounding, and by less than one group where groups are whole.
            count = sum(made[ids[row]] == part for row in rows)
            assert abs(count - share * len(rows)) < largest + (1 if groups else 0)
    older = list(range(n - n // 5))
    before = parts_of(older)
    after = parts_of(list(range(n)), before)
    assert {image: after[image] for image in before} == before


def test_parts_are_those_of_a_plain_selection_and_a_source_may_have_any_form(tmp_path: Path) -> None:
    """Without groups, the lists equal those of plain Python; JSON, a table and a list of ids give the same split."""
    coco = drawn(random.Random(2), 101, NAMES, 1000, 3)
    numbers = [image["id"] for image in coco["images"]]
    (tmp_path / "a.json").write_text(json.dumps(coco))
    (tmp_path / "b.txt").write_text("".join(f"{number}\n" for number in sorted(numbers)))
    (tmp_path / "c.csv").write_text("image_id,class\n" + "".join(f"{number},nut\n" for number in numbers))
    shares = {"train": Fraction(7, 10), "val": Fraction(1, 10), "test": Fraction(1, 5)}
    expected = plain_split([f"parts:{number}" for number in numbers], shares, "mylab/parts")
    for file in ("a.json", "b.txt", "c.csv"):
        made = curation.split({"parts": tmp_path / file}, "test=0.2, val=0.1, train=0.70", name="mylab/parts")
        assert {part: list(made.ids(part)) for part in made.parts} == expected
        assert [part.role for part in made.header.parts] == ["train", "val", "test"]
        made.save(tmp_path / f"made-{file}")
        checked = curation.verify(tmp_path / f"made-{file}", rebuild=True)
        assert checked.ok, checked.findings
        assert [row.outcome for row in checked.findings if row.check == "rebuild"] == ["ok"] * 4
    assert made.header.paper is None
    assert made.header.notes == ("Rule split; data: user.",)


def test_a_split_of_class_folders_is_scored_by_the_command_that_it_prints(tmp_path: Path, shell: Shell) -> None:
    """Without unknown classes the accuracy is defined, and OSCR is undefined with its reason."""
    for name, k in product(NAMES, range(10)):
        photo = tmp_path / "photos" / name / f"{k}.jpg"
        photo.parent.mkdir(parents=True, exist_ok=True)
        photo.write_text(f"{name} {k}")
    said = shell.out(
        "split", tmp_path / "photos", "--parts", "train=0.5,test=0.5", "--stratify", "--out", tmp_path / "s"
    )
    (words,) = [line.split()[2:] for line in said.splitlines() if line.startswith("next: curation evaluate")]
    images = curation.load(tmp_path / "s").ids("test")
    classes = sorted(NAMES)
    # A classifier that is wrong about the first two photos of every class.
    calls = [
        (classes.index(image.split(":")[1].split("/")[0]) + (image[-5] in "01")) % len(classes) for image in images
    ]
    rows = [
        f"{image},{','.join(str(int(n == call)) for n in range(4))}" for image, call in zip(images, calls, strict=True)
    ]
    (tmp_path / "scores.csv").write_text("\n".join([",".join(["image", *classes]), *rows]))
    words[words.index("FILE")] = str(tmp_path / "scores.csv")
    words[words.index("--out") + 1] = str(tmp_path / "scored")
    said = shell.out(*words)
    right = sum(image[-5] not in "01" for image in images)
    assert 0 < right < len(images)
    assert f"{right / len(images):.4f} closed-set accuracy" in " ".join(said.split())
    assert "no unknown sample" in said


def grouped_coco(rng: random.Random, n: int) -> dict[str, Any]:
    """Return annotations whose images have a patient, in a key and in the path."""
    coco = drawn(rng, n, NAMES, 1, 3)
    for image in coco["images"]:
        patient = image["id"] // 40
        image |= {"patient": patient, "file_name": f"patient{patient}/{image['id']}.jpg"}
    return coco


def test_groups_by_column_and_by_pattern_pass_the_audit(tmp_path: Path, shell: Shell) -> None:
    """A column of JSON, of a table, and a pattern on the path keep patients whole; the audit finds none shared."""
    coco = grouped_coco(random.Random(4), 200)
    (tmp_path / "a.json").write_text(json.dumps(coco))
    rows = [f"{image['file_name']},nut,{image['patient']}\n" for image in coco["images"]]
    (tmp_path / "b.csv").write_text("image,class,patient\n" + "".join(rows))
    (tmp_path / "c.txt").write_text("".join(f"{image['file_name']}\n" for image in coco["images"]))
    patient_of = {str(image["id"]): image["patient"] for image in coco["images"]}
    for number, (file, group) in enumerate(
        [("a.json", "patient"), ("a.json", r"(patient\d+)/"), ("b.csv", "column=patient"), ("c.txt", r"patient(\d+)")]
    ):
        out = tmp_path / f"made{number}"
        words = ["split", tmp_path / file, "--parts", PARTS, "--group", group, "--out", out]
        assert "next: curation verify" in shell.out(*words)
        made = curation.load(out)
        homes = collections.defaultdict(set)
        for part in made.parts:
            for image in made.ids(part):
                homes[patient_of[image.partition(":")[2]]].add(part)
        assert all(len(parts) == 1 for parts in homes.values())
        assert curation.verify(out, rebuild=True).ok
    report = curation.audit(tmp_path / "made0")
    assert (report.sums.errors, report.sums.warnings, report.sums.notes) == (0, 0, 0)
    assert report.verdict("LI2") == "not applicable"


def test_kept_images_stay_and_the_manifest_rebuilds_without_the_earlier_one(tmp_path: Path) -> None:
    """`keep` moves nobody when data grow and keeps exact shares; the manifest states the images that it pinned."""
    coco = drawn(random.Random(3), 500, NAMES, 1, 2)
    early = coco | {"images": coco["images"][:400]}
    chosen = {image["id"] for image in early["images"]}
    early["annotations"] = [each for each in coco["annotations"] if each["image_id"] in chosen]
    (tmp_path / "early.json").write_text(json.dumps(early))
    (tmp_path / "late.json").write_text(json.dumps(coco))
    first = curation.split({"parts": tmp_path / "early.json"}, PARTS, name="mylab/parts", stratify=True)
    first.save(tmp_path / "first")
    second = curation.split(
        {"parts": tmp_path / "late.json"}, PARTS, name="mylab/parts", stratify=True, keep=tmp_path / "first"
    )
    assert all(set(first.ids(part)) <= set(second.ids(part)) for part in first.parts)
    assert [part.images for part in second.header.parts] == [350, 50, 100]
    stated = json.loads(str(second.header.rule.parameters["file"]))["parameters"]
    assert "keep" not in stated
    assert 0 < sum(map(len, stated["fixed"].values())) < 100
    second.save(tmp_path / "second")
    assert curation.verify(tmp_path / "second", rebuild=True).ok
    text = 'rule = "split"\nname = "mylab/parts"\n[sources]\nparts = { dataset = "parts" }\n[parameters]\n'
    text += 'shares = { train = 0.7, val = 0.1, test = 0.2 }\nstratify = true\nkeep = "first"\n'
    (tmp_path / "file.toml").write_text(text)
    assert curation.build(tmp_path / "file.toml", {"parts": tmp_path / "late.json"}).digest == second.digest


def test_strata_keep_the_shares_of_classes() -> None:
    """Each class has its share of images in each part, the rarest within one image."""
    rng = random.Random(8)
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 9, "height": 9} for n in range(1000)]
    label = {image["id"]: 1 if n < 20 else rng.choice([2, 3]) for n, image in enumerate(images)}
    box = {"bbox": [0, 0, 5, 5], "area": 25, "iscrowd": 0}
    boxes = [{"id": n + 1, "image_id": n, "category_id": label[n], **box} for n in label]
    coco = {"images": images, "annotations": boxes, "categories": [{"id": n, "name": f"c{n}"} for n in (1, 2, 3)]}
    made = curation.split({"shapes": coco}, PARTS, stratify=True)
    total = collections.Counter(label.values())
    for part, share in SHARES.items():
        counts = collections.Counter(label[int(image.partition(":")[2])] for image in made.ids(part))
        assert all(abs(counts[number] - share * total[number]) < 1 for number in total)


def test_near_duplicates_stay_together(tmp_path: Path) -> None:
    """A photo and its smaller copy are in one part; the manifest rebuilds without the photos."""
    rng = np.random.default_rng(1)
    (tmp_path / "photos").mkdir()
    images, n = [], 0
    for scene in range(30):
        photo = Image.fromarray(rng.integers(0, 255, (9, 9, 3), np.uint8)).resize((256, 256))
        for size in (256, 192, 128):
            n += 1
            photo.resize((size, size)).save(tmp_path / "photos" / f"{n:03d}.png")
            images.append({"id": n, "file_name": f"{n:03d}.png", "width": size, "height": size, "scene": f"s{scene}"})
    coco = {"images": images, "annotations": [], "categories": []}
    (tmp_path / "a.json").write_text(json.dumps(coco))
    made = curation.split(tmp_path / "a.json", "train=0.6,test=0.4", near_duplicates=tmp_path / "photos")
    home = {image: part for part in made.parts for image in made.ids(part)}
    assert all(len({home[f"a:{3 * scene + k}"] for k in (1, 2, 3)}) == 1 for scene in range(30))
    made.save(tmp_path / "made")
    (tmp_path / "photos").rename(tmp_path / "elsewhere")
    assert curation.verify(tmp_path / "made", rebuild=True).ok
    plain = curation.split(tmp_path / "a.json", "train=0.6,test=0.4")
    home = {image: part for part in plain.parts for image in plain.ids(part)}
    assert any(len({home[f"a:{3 * scene + k}"] for k in (1, 2, 3)}) == 2 for scene in range(30))


def test_the_hash_seed_of_the_interpreter_has_no_say(tmp_path: Path) -> None:
    """The manifest has the same bytes under any hash seed."""
    (tmp_path / "a.json").write_text(json.dumps(grouped_coco(random.Random(1), 80)))
    code = (
        "import curation, sys; print(curation.split(sys.argv[1], 'train=0.5,test=0.5', group='patient', "
        "stratify=True).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "a.json")],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
        ).stdout
        for seed in ("1", "77")
    }
    assert len(digests) == 1


def test_two_sources_of_the_same_images_are_advised_to_be_split_and_the_advice_works(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`init` refuses them with a command that divides the images; its parts are accepted."""
    monkeypatch.chdir(tmp_path)
    coco = drawn(random.Random(6), 60, NAMES, 1, 3)
    for number, each in enumerate(coco["annotations"]):
        each["bbox"] = [1 + number % 40, 1 + number % 30, 5 + number % 11, 6]
    (tmp_path / "train.json").write_text(json.dumps(coco))
    (tmp_path / "test.json").write_text(json.dumps(coco | {"info": {}}))
    text = shell.err("init", "wilderness", "--source", "closed=train.json", "--source", "wild=test.json")
    hint = text.rstrip().rpartition("try: ")[2]
    assert hint.startswith("they hold the same 60 images: curation split train.json")
    shell.out(*hint.partition("curation ")[2].split())
    shell.out("export", "DIR", "--part", "all", "--format", "coco", "--each", "--out", "files")
    words = ["--source", "closed=files/train.json", "--source", "wild=files/test.json", "--out", "b.toml"]
    assert "next: curation build" in shell.out("init", "wilderness", *words)


def test_the_advice_about_a_folder_that_cannot_be_divided_as_it_is_works(tmp_path: Path, shell: Shell) -> None:
    """Of a root with several parts the training images are divided; photos alone are no dataset."""
    for part, first in (("train", 1), ("test", 5000)):
        (tmp_path / "root" / part).mkdir(parents=True)
        coco = drawn(random.Random(first), 20, NAMES, first, 3)
        (tmp_path / "root" / part / "_annotations.coco.json").write_text(json.dumps(coco))
        (tmp_path / "photos" / f"{part}s").mkdir(parents=True)
        for k in range(2):
            (tmp_path / "photos" / f"{part}s" / f"{k}.jpg").write_text(f"{part} {k}")
    words = ["--parts", "train=0.5,test=0.5", "--out", tmp_path / "made"]
    (hint,) = re.findall("try: (.+)", shell.err("split", tmp_path / "root", *words))
    assert hint == f"root@train={tmp_path / 'root'}"
    shell.out("split", hint, *words)
    assert len(curation.load(tmp_path / "made").ids("train")) == 10
    refused = shell.err("split", tmp_path / "photos" / "trains", *words[:2], "--out", tmp_path / "other")
    assert "found: photos without annotations" in refused
    shell.out("split", tmp_path / "photos", *words[:2], "--out", tmp_path / "other")


def test_a_large_group_is_a_warning(tmp_path: Path) -> None:
    """A group that exceeds the share of a part is named, and goes to the first part."""
    images = [{"id": n, "file_name": f"{n}.jpg", "video": "long" if n < 60 else f"v{n}"} for n in range(100)]
    (tmp_path / "a.json").write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
    with pytest.warns(CurationWarning, match=r"long \(60 images\)"):
        made = curation.split(tmp_path / "a.json", PARTS, group="video")
    assert {f"a:{n}" for n in range(60)} <= set(made.ids("train"))
    assert [part.images for part in made.header.parts] == [70, 10, 20]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--parts", "train=0.7,test=0.2"], "sum to 0.9, not to 1"),
        (["--parts", "train=0.7"], "two or more numbers"),
        (["--parts", "train=1.5,test=-0.5"], "two or more numbers"),
        (["--parts", "train,test"], "A part has no share"),
        (["--parts", "train=0.5,train=0.5"], "A part is named twice"),
        (["--parts", "train=nan,test=0.5"], "A part has no share"),
        (["--parts", "Train=0.5,test=0.5"], "a name with characters other than a-z"),
        ([], "--parts is missing"),
        (["--parts", PARTS, "--group", "patiet"], "did you mean patient?"),
        (["--parts", PARTS, "--group", "nothing"], "Unknown column"),
        (["--parts", PARTS, "--group", r"(xyz\d+)"], "The pattern matches no path"),
        (["--parts", PARTS, "--group", r"(?=a)(b)"], "Unsupported regular expression"),
        (["--parts", PARTS, "--group", r"(?:patient)"], "no capture group"),
        (["--parts", PARTS, "--group", f"({'a' * 1001})"], "The pattern is too long"),
        (["--parts", PARTS, "--keep", "nowhere"], "No such manifest"),
        (["--parts", PARTS, "--near-duplicates", "nowhere"], "folder of photos does not exist"),
        (["--parts", PARTS, "--name", "My Name"], "Invalid name of a manifest"),
        (["--parts", PARTS, "--name", "elephant/mine"], "belongs to a benchmark"),
        (["--parts", "train=0.999,test=0.001"], "Part test gets no image"),
    ],
)
def test_wrong_words_are_one_error(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    """Each says what is wrong; nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(grouped_coco(random.Random(1), 80)))
    assert message in shell.err("split", "a.json", *words, "--out", "made")
    assert not (tmp_path / "made").exists()


def test_an_earlier_split_that_contradicts_is_refused(tmp_path: Path) -> None:
    """Groups over two kept parts, a part that is gone and ids of other data are errors, never a silent move."""
    (tmp_path / "a.json").write_text(json.dumps(grouped_coco(random.Random(1), 80)))
    first = curation.split(tmp_path / "a.json", PARTS)
    for words, message in (
        ({"group": "patient"}, "two parts of the earlier split"),
        ({"parts": "train=0.5,test=0.5"}, "a part that this one lacks"),
        ({"source": {"other": tmp_path / "a.json"}}, "contains no image of this source"),
    ):
        arguments = {"source": tmp_path / "a.json", "parts": PARTS, "keep": first, **words}
        with pytest.raises(CurationError, match=message):
            curation.split(**arguments)


def test_a_stored_file_names_no_manifest_and_a_changed_source_is_refused(tmp_path: Path) -> None:
    """A foreign header cannot make a rebuild read another folder; a column is read from the very file."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(grouped_coco(random.Random(1), 80)))
    made = curation.split(path, PARTS, group="patient")
    stored = json.loads(str(made.header.rule.parameters["file"]))
    stored["parameters"]["keep"] = "elephant/val2017"
    with pytest.raises(CurationError, match="not names of files"):
        read_benchmark_file(json.dumps(stored))
    for change in (
        {"shares": {"a": "1e-999999999", "b": "1"}},
        {"shares": {"a": "NaN", "b": "0.5"}},
        {"shares": {"a": "0.5", "../b": "0.5"}},
        {"shares": {}},
        {"group": "x" * 5000 + "("},
        {"group": "nothing"},
        {"joined": ["a"]},
        {"fixed": {"c": ["a:1"]}},
        {"keep": {"train": ["other:1"], "val": [], "test": []}},
        {"fixed": {"train": ["a:1"], "test": ["a:1"]}},
    ):
        stored["parameters"] = {"shares": {"train": "0.7", "val": "0.1", "test": "0.2"}, **change}
        header = msgspec.structs.replace(
            made.header, rule=msgspec.structs.replace(made.header.rule, parameters={"file": json.dumps(stored)})
        )
        with pytest.raises(CurationError):
            rebuild(Manifest(header, made.lists), {"a": curation.open_source("a", path)})
    source = curation.open_source("a", path)
    path.write_text(json.dumps(grouped_coco(random.Random(2), 80)))
    with pytest.raises(CurationError, match="has changed"):
        curation.split({"a": source}, PARTS, group="patient")
    memory = curation.open_source("a", grouped_coco(random.Random(2), 8))
    with pytest.raises(CurationError, match="has no columns"):
        curation.split({"a": memory}, PARTS, group="patient")
