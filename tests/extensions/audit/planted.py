"""Eleven sound folders of strangers' lists, sixty things planted in them, and what an audit must say of each.

Written from the specification, not from the code. A folder is a mapping of file names to lines, a JSON document or
bytes; what is planted changes it in place.
"""

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Folder = dict[str, Any]
SILENCE = frozenset({"note", "pass", "undecidable"})
"""Gravities that accuse nobody."""


def write(folder: Folder, place: Path) -> Path:
    for name, held in folder.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(held, dict):
            held = json.dumps(held)
        file.write_bytes(held if isinstance(held, bytes) else (held if isinstance(held, str) else text(held)).encode())
    return place


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _cut(rows: list[Any], *sizes: int) -> list[list[Any]]:
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    assert ends[-1] == len(rows), (ends, len(rows))
    return [rows[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def plain() -> Folder:
    """One path a line, names that tell nothing: no group can be read."""
    pick = random.Random(1)
    rooms = ("kitchen", "bedroom", "office", "cellar", "porch", "attic")
    rows = [f"indoor/{pick.choice(rooms)}/{pick.getrandbits(64):016x}.jpg" for _ in range(460)]
    return dict(zip(("train.txt", "val.txt", "test.txt"), _cut(rows, 300, 60, 100), strict=True))


def birds() -> Folder:
    """``PATH LABEL``: folders and the words of names are the classes."""
    pick = random.Random(2)
    species = [f"{a}_{b}" for a in ("Sooty", "Laysan", "Crested", "Rusty") for b in ("Auklet", "Tern", "Wren", "Gull")]
    rows = [
        f"images/{label + 1:03}.{name}/{name}_{number:04}_{pick.randrange(10**5, 10**6)}.jpg {label}"
        for label, name in enumerate(species)
        for number in pick.sample(range(1, 130), 20)
    ]
    pick.shuffle(rows)
    return dict(zip(("train_birds.txt", "val_birds.txt", "test_birds.txt"), _cut(rows, 220, 40, 60), strict=True))


def covid() -> Folder:
    """``PATIENT FILE CLASS [SOURCE]``; some patients hold a blank, some lines of the test list lack the source."""
    pick = random.Random(3)
    patients = [f"ANON{number}" for number in pick.sample(range(10, 300), 60)]
    patients += [f"COVID {number}" for number in pick.sample(range(1, 300), 60)]
    pick.shuffle(patients)

    def rows(some: list[str]) -> list[str]:
        return [
            f"{patient} {patient.replace(' ', '-')}-{pick.getrandbits(32):08x}({number}).png "
            f"{pick.choice(('positive', 'negative'))} {'actmed' if patient.startswith('A') else 'sirm'}"
            for patient in some
            for number in range(pick.randint(1, 3))
        ]

    test = [row.rpartition(" ")[0] if place % 2 else row for place, row in enumerate(rows(patients[90:]))]
    return {"train_COVIDx8.txt": rows(patients[:90]), "test_COVIDx8.txt": test}


def kitti() -> Folder:
    """Two files a line; frame numbers are in many drives, each drive on one side."""
    rows = [
        f"{day}/{day}_drive_{drive:04}_sync/image_02/data/{frame:010}.jpg "
        f"{day}/{day}_drive_{drive:04}_sync/image_03/data/{frame:010}.jpg"
        for drive in range(1, 20)
        for day in ["2011_09_26" if drive % 3 else "2011_09_30"]
        for frame in range(0, 100, 5)
    ]
    names = ("eigen_train_files.txt", "eigen_val_files.txt", "eigen_test_files.txt")
    return dict(zip(names, _cut(rows, 240, 60, 80), strict=True))


def chest() -> Folder:
    """A file and fourteen labels, of which several or none hold; names begin with the patient."""
    pick = random.Random(5)

    def row(patient: int, number: int) -> str:
        return f"{patient:08}_{number:03}.png " + " ".join(str(int(pick.random() < 0.1)) for _ in range(14))

    people = pick.sample(range(1, 30806), 200)
    parts = {"train_list.txt": people[:120], "val_list.txt": people[120:150], "test_list.txt": people[150:]}
    return {name: [row(one, n) for one in some for n in range(pick.randint(1, 3))] for name, some in parts.items()}


def skin() -> Folder:
    """One table with a column that splits it, and lesions of several photos."""
    pick = random.Random(6)
    rows = []
    for lesion in range(150):
        label, part = pick.choice(("nv", "mel", "bkl", "bcc")), "train" if lesion < 100 else "test"
        for _ in range(pick.randint(1, 3)):
            rows.append(f"HAM_{lesion * 37:07},ISIC_{24000 + len(rows):07}.jpg,{label},{pick.randint(20, 85)},{part}")
    pick.shuffle(rows)
    return {"metadata.csv": ["lesion_id,image,dx,age,split", *rows]}


def robo() -> Folder:
    """COCO JSON by folder, each numbered from 0; of a photo several changed copies, all on one side."""
    pick = random.Random(7)
    categories = [{"id": n, "name": name} for n, name in enumerate(("litter", "bottle", "can", "bag"))]

    def document(sources: range, copies: int) -> dict[str, Any]:
        names = [f"IMG_{n:04}_jpg.rf.{pick.getrandbits(128):032x}.jpg" for n in sources for _ in range(copies)]
        images = [{"id": n, "file_name": name, "width": 640, "height": 640} for n, name in enumerate(names)]
        boxes = [
            {"id": n, "image_id": n // 2, "category_id": pick.randint(1, 3), "bbox": [9, 9, 40, 50], "iscrowd": 0}
            for n in range(2 * len(names))
        ]
        for box in boxes:
            box["area"] = 2000
        return {"info": {}, "images": images, "annotations": boxes, "categories": categories}

    parts = {"train": (range(60), 3), "valid": (range(60, 115), 1), "test": (range(115, 170), 1)}
    return {f"{name}/_annotations.coco.json": document(*given) for name, given in parts.items()}


def slides() -> Folder:
    """JSON lines: patches of slides, each slide on one side."""
    pick = random.Random(8)
    rows = [
        json.dumps({"image": f"patches/B{slide:03}_patch_{n}.png", "label": pick.choice(("tumor", "normal"))})
        for slide in range(40)
        for n in pick.sample(range(500), 8)
    ]
    return dict(zip(("train.jsonl", "val.jsonl", "test.jsonl"), _cut(rows, 208, 56, 56), strict=True))


def ids() -> Folder:
    """VOC's image sets, whose trainval is train and val, and COCO's names as JSON by split."""
    pick = random.Random(9)
    voc = [f"{number:06}" for number in sorted(pick.sample(range(5, 9964), 300))]
    pick.shuffle(voc)
    train, val, test = _cut(voc, 100, 100, 100)
    sets = {"train": train, "val": val, "trainval": sorted(train + val), "test": test}
    coco = [f"COCO_train2014_{number:012}.jpg" for number in pick.sample(range(9, 581921), 200)]
    files: Folder = {f"VOC2007/ImageSets/Main/{name}.txt": rows for name, rows in sets.items()}
    return files | {"coco/splits.json": {"train": coco[:140], "val": coco[140:]}}


def semi() -> Folder:
    """Labelled and unlabelled parts of one train set by share, a validation list above them; image and mask a line."""
    pick = random.Random(10)

    def rows(part: str, cities: tuple[str, ...], count: int) -> list[str]:
        names = [f"{part}/{city}/{city}_{n:06}_000019" for city in cities for n in range(count)]
        return [f"leftImg8bit/{name}_leftImg8bit.png gtFine/{name}_gtFine_labelIds.png" for name in names]

    train = rows("train", ("aachen", "bochum", "bremen", "cologne", "darmstadt", "erfurt"), 60)
    pick.shuffle(train)
    files: Folder = {"val.txt": rows("val", ("frankfurt", "lindau", "munster"), 30)}
    for share in (10, 20):
        count = len(train) * share // 100
        files |= {f"{share}pct/labeled.txt": train[:count], f"{share}pct/unlabeled.txt": train[count:]}
    return files


def folds() -> Folder:
    """Three folds of one set: the test list of a fold lies in the train lists of the others."""
    actions = ("Archery", "Biking", "Diving", "Fencing", "Rowing")
    clips = [
        (group % 3, f"{name}/v_{name}_g{group + 1:02}_c{clip:02}.avi", label + 1)
        for label, name in enumerate(actions)
        for group in range(24)
        for clip in (1, 2)
    ]
    files: Folder = {}
    for fold in range(3):
        files[f"trainlist0{fold + 1}.txt"] = [f"{path} {label}" for part, path, label in clips if part != fold]
        files[f"testlist0{fold + 1}.txt"] = [path for part, path, _ in clips if part == fold]
    return files


SOUND: Mapping[str, Callable[[], Folder]] = {
    made.__name__: made for made in (plain, birds, covid, kitti, chest, skin, robo, slides, ids, semi, folds)
}


@dataclass(frozen=True)
class Planted:
    """One thing planted in a sound folder.

    `said` holds ``RULE GRAVITY LISTS COUNT [WORDS]`` of each statement that must come out, with ``-`` for any; `also`
    the rules that rightly speak of it besides.
    """

    name: str
    folder: str
    plant: Callable[[Folder], None]
    said: tuple[str, ...]
    also: str
    options: Mapping[str, Any]

    def missed(self, statements: list[dict[str, Any]]) -> list[str]:
        """Return what was not said, and what was said falsely."""
        silent = [f"not said: {one}" for one in self.said if not any(is_said(one, other) for other in statements)]
        loud = [one for one in statements if one["gravity"] not in SILENCE and one["rule"] not in self.also.split()]
        false = [one for one in loud if not any(is_said(said, one) for said in self.said)]
        return silent + [f"falsely said: {told(one)}" for one in false]


def told(statement: Mapping[str, Any]) -> str:
    return " ".join(str(statement[key]) for key in ("rule", "gravity", "lists", "count", "text"))


def is_said(said: str, statement: Mapping[str, Any]) -> bool:
    rule, gravity, lists, count, words = (*said.split(maxsplit=4), "")[:5]
    wanted = [] if lists == "-" else lists.split(",")
    named = [re.sub(r"\.(txt|csv|json|jsonl)$", "", name) for name in statement["lists"]]
    found = [one for one in wanted if any(name == one or name.endswith((f"/{one}", f"[{one}]")) for name in named)]
    return (
        statement["rule"] in rule.split("|")
        and statement["gravity"] in gravity.split("|")
        and (not wanted or len(found) == len(wanted) == len(named))
        and count in ("-", str(statement["count"]))
        and words.lower() in " ".join([statement["text"], *statement["examples"]]).lower()
    )


PLANTED: list[Planted] = []


def _plant(name: str, folder: str, plant: Callable[[Folder], None], *said: str, also: str = "", **options: Any) -> None:
    PLANTED.append(Planted(name, folder, plant, said, also, options))


Change = Callable[[str], str]
Plant = Callable[[Folder], None]


def put(of: str, to: str, count: int, change: Change = str) -> Plant:
    """Let the last lines of one list are in another as well."""
    return lambda files: files[f"{to}.txt"].extend([change(row) for row in files[f"{of}.txt"][-count:]])


def copy(of: str, to: str, change: Callable[[list[str]], Any]) -> Plant:
    """Let one list stand for another, changed."""
    return lambda files: files.update({to: change(files[of])})


def end(name: str, count: int) -> Plant:
    """Cut the last characters of a list."""
    return copy(name, name, lambda rows: text(rows)[:-count])


def line(name: str, number: int, change: Change) -> Plant:
    """Change the line of a number."""
    return lambda files: files[name].__setitem__(number - 1, change(files[name][number - 1]))


def each(of: str, to: str, change: Change) -> Plant:
    return copy(of, to, lambda rows: [change(row) for row in rows])


def swap(old: str, new: str) -> Change:
    return lambda row: row.replace(old, new)


def move(of: str, to: str, count: int) -> Plant:
    """Move every second of the last lines of a list."""

    def plant(files: Folder) -> None:
        files[to] += (moved := files[of][-count::2])
        files[of] = [row for row in files[of] if row not in moved]

    return plant


def shuffled(rows: list[str]) -> list[str]:
    return random.Random(0).sample(rows, len(rows))


def domains(files: Folder) -> None:
    rows, tests = files["train.txt"], files["test.txt"]
    files.clear()
    files |= {
        "photo_train.txt": rows,
        "photo_test.txt": tests,
        "sketch_train.txt": tests[9:],
        "sketch_test.txt": rows[:50],
    }


ROWS = "train.txt", "test.txt"
TWICE = "DS2 error train,test 300 twice"
_plant("test lines in train", "plain", put("test", "train", 7), "DS2 error train,test 7")
_plant("val lines in train", "plain", put("val", "train", 5), "DS4 error train,val 5")
_plant("val within train", "plain", put("val", "train", 60), "DS4 error train,val 60")
_plant("val lines in test", "plain", put("val", "test", 4), "DS2 error val,test 4")
_plant("one file twice", "plain", copy(*ROWS, list), TWICE)
_plant("the same, shuffled", "plain", copy(*ROWS, shuffled), TWICE)
_plant("the same, CR LF", "plain", each(*ROWS, lambda row: f"{row}\r"), TWICE)
_plant("the same with ./", "plain", each(*ROWS, lambda row: f"./{row}"), TWICE)
_plant(
    "backslashes", "plain", put("test", "train", 6, lambda row: row.replace("/", "\\") + " "), "DS2 error train,test 6"
)
_plant(
    "byte order mark",
    "plain",
    lambda f: f["test.txt"].insert(0, "\ufeff" + f["train.txt"][9]),
    "DS2 error train,test 1",
)
_plant("no suffixes", "plain", copy(*ROWS, lambda rows: [row[:-4] for row in rows[:80]]), "DS2 error train,test 80")
_plant("lines again", "plain", put("train", "train", 3), "DS1 error train 3")
_plant("cut path", "plain", end("train.txt", 15), "PL13 error train 1")
_plant("other case", "plain", put("test", "train", 8, str.title))
_plant("other suffix", "plain", put("test", "train", 8, swap(".jpg", ".png")))
_plant("other root", "plain", put("test", "train", 8, swap("indoor/", "mirror/rooms/")))
_plant(
    "bare names",
    "plain",
    copy(*ROWS, lambda rows: [row.rpartition("/")[2] for row in rows[:90]]),
    "DS2 warning|note train,test 90 if the file name alone identifies the image",
)
BOTH = {"val": "id", "test": "ood", "train": "none"}
_plant("in and out", "plain", put("val", "test", 4), "PL17 error|warning val,test 4", roles=BOTH)
_plant("domains in turn", "plain", domains)


def relabel(row: str) -> str:
    path, _, label = row.rpartition(" ")
    return f"{path} {int(label) + 1}"


BOTH_TOLD = "DS4 error train_birds,val_birds 4", "PL9 warning train_birds,val_birds 4"
_plant("two labels", "birds", put("train_birds", "train_birds", 4, relabel), "PL9 warning - 4")
_plant("other label in val", "birds", put("train_birds", "val_birds", 4, relabel), *BOTH_TOLD)
_plant("labels moved by one", "birds", each("test_birds.txt", "test_birds.txt", relabel), "PL9 error|warning - - label")
_plant("no label", "birds", line("train_birds.txt", 71, lambda row: row.split()[0]), "PL13 error train_birds 1 71")
_plant("a name in two folders", "birds", each("train_birds.txt", "other/train_birds.txt", swap("images/", "photos/")))


def patient(kind: str, count: int) -> Plant:
    """Give test patients the names of patients of train."""

    def plant(files: Folder) -> None:
        lists = [text(files[f"{part}_COVIDx8.txt"]) for part in ("train", "test")]
        train, test = (list(dict.fromkeys(re.findall(rf"^{kind}\d+ ", rows, re.M))) for rows in lists)
        for old, new in zip(test[:count], train, strict=False):
            lists[1] = re.sub(f"^{old}", new, lists[1], flags=re.M)
        files["test_COVIDx8.txt"] = lists[1].splitlines()

    return plant


def other_class(row: str) -> str:
    return re.sub("positive|negative", lambda found: {"positive": "negative"}.get(found[0], "positive"), row)


SIDES = "train_COVIDx8,test_COVIDx8"
_plant("a patient", "covid", patient("ANON", 1), f"PL7 warning {SIDES} 1 patient")
_plant("patients with a blank", "covid", patient("COVID ", 2), f"PL7 warning {SIDES} 2 patient")
_plant("a patient's file", "covid", put("test_COVIDx8", "train_COVIDx8", 2), f"DS2 error {SIDES} 2", also="PL7")
_plant("two classes", "covid", put("train_COVIDx8", "train_COVIDx8", 3, other_class), "PL9 warning train_COVIDx8 3")
_plant(
    "no class", "covid", line("train_COVIDx8.txt", 21, lambda row: row[: row.index(".png") + 4]), "PL13 error - 1 21"
)
_plant(
    "another version",
    "covid",
    lambda f: f.update({"train_COVIDx9.txt": f["train_COVIDx8.txt"][9:] + f["test_COVIDx8.txt"][:5]}),
    "DS2|PL14 note train_COVIDx9,test_COVIDx8 5",
)

TRAIN, VAL, TEST = (f"eigen_{part}_files" for part in ("train", "val", "test"))
STEREO = f"{TRAIN}.txt"
_plant("a drive of val", "kitti", move(f"{VAL}.txt", STEREO, 20), f"PL7 warning {TRAIN},{VAL} 1 drive")
_plant("stereo pairs of test", "kitti", put(TEST, TRAIN, 5), f"DS2 error {TRAIN},{TEST} 5", also="PL7")
_plant(
    "the other camera",
    "kitti",
    put(TEST, TRAIN, 6, lambda row: " ".join(reversed(row.split()))),
    f"PL7 warning {TRAIN},{TEST} -",
)
_plant("stereo lines again", "kitti", put(TRAIN, TRAIN, 2), f"DS1 error {TRAIN} 2")
_plant("cut companion", "kitti", end(STEREO, 40), f"PL13 error {TRAIN} 1")
_plant("another companion", "kitti", put(TRAIN, TRAIN, 3, swap("image_03", "depth")))


def films(files: Folder) -> None:
    people = sorted({row[:8] for row in files["test_list.txt"]})
    files["train_list.txt"] += [f"{patient}_007.png 0 1" + " 0" * 12 for patient in people[:2]]


_plant("patients of test", "chest", films, "PL7 warning train_list,test_list 2 patient")
_plant("films of val", "chest", put("val_list", "train_list", 3), "DS4 error train_list,val_list 3", also="PL7")
_plant("13 labels", "chest", line("val_list.txt", 9, lambda row: row[:-2]), "PL13 error val_list 1 9")


def table(part: str, count: int, change: Change) -> Plant:
    """Add changed rows of one part of the table, each of another lesion."""

    def plant(files: Folder) -> None:
        rows = {row.split(",")[0]: row for row in files["metadata.csv"] if row.endswith(part)}
        files["metadata.csv"] += [change(row) for row in list(rows.values())[:count]]

    return plant


def labels(files: Folder) -> None:
    rows = [",".join(row.split(",")[1:3]) for row in sorted(files["metadata.csv"])[:-1]]
    files["labels.csv"] = ["image,dx", *(f"{row}x" for row in rows[:5]), *rows[5:]]


LESION, FINDING = re.compile(",ISIC_00(.*)test"), re.compile("(?<=jpg,)[a-z]+")
_plant(
    "lesions",
    "skin",
    table("test", 2, lambda row: LESION.sub(r",ISIC_99\1train", row)),
    "PL7 warning split=train,split=test 2",
)
_plant(
    "photos in two parts",
    "skin",
    table("test", 3, swap(",test", ",train")),
    "DS2 error split=train,split=test 3",
    also="PL7",
)
_plant("two findings", "skin", table("train", 2, lambda row: FINDING.sub("df", row)), "PL9 warning split=train 2")
_plant("a short row", "skin", line("metadata.csv", 31, lambda row: row.rsplit(",", 2)[0]), "PL13 error - 1 31")
_plant("another table", "skin", labels, "PL16 warning - 5 column")


def record(part: str, of: str, count: int, key: str, value: Callable[[Any], Any]) -> Plant:
    """Change a field of the last records of a table of COCO JSON."""

    def plant(files: Folder) -> None:
        for one in files[f"{part}/_annotations.coco.json"][of][-count:]:
            one[key] = value(one[key])

    return plant


def name(of: str, to: str, count: int, change: Change = str) -> Plant:
    """Give the last images of one COCO JSON the names of the first of another."""

    def plant(files: Folder) -> None:
        first, last = (files[f"{part}/_annotations.coco.json"]["images"] for part in (of, to))
        for old, new in zip(last[-count:], first[:count], strict=True):
            old["file_name"] = change(new["file_name"])

    return plant


def sort_categories(files: Folder) -> None:
    names = ("litter", "bag", "bottle", "can")
    files["valid/_annotations.coco.json"]["categories"] = [{"id": n, "name": one} for n, one in enumerate(names)]


COCO = "_annotations.coco"
_plant(
    "copies of a photo",
    "robo",
    name("valid", "train", 4, lambda n: f"{n[:-36]}{0:032}.jpg"),
    f"PL7 warning train/{COCO},valid/{COCO} 4",
)
_plant("files in two folders", "robo", name("test", "train", 2), f"DS2 error train/{COCO},test/{COCO} 2", also="PL7")
_plant(
    "numbers twice", "robo", record("train", "annotations", 2, "id", lambda n: n - 9), f"PL6 error train/{COCO} - 358"
)
_plant(
    "orphans",
    "robo",
    record("train", "annotations", 3, "image_id", lambda _: 9000),
    f"PL15 error|warning train/{COCO} 3",
)
_plant(
    "no such category",
    "robo",
    record("valid", "annotations", 2, "category_id", lambda _: 17),
    f"PL15 error|warning valid/{COCO} - 17",
)
_plant("one file, two numbers", "robo", name("test", "test", 1), f"PL15|DS1 error|warning test/{COCO} 1")
_plant("other category numbers", "robo", sort_categories, "PL15 error|warning - - bottle")

_plant("a slide", "slides", move("test.jsonl", "train.jsonl", 8), "PL7 warning train,test 1")
_plant("cut line", "slides", end("test.jsonl", 30), "PL13 error test 1")

VOC, SPLITS = "VOC2007/ImageSets/Main", "coco/splits.json"
_plant(
    "ids in other forms",
    "ids",
    lambda f: f[SPLITS]["train"].extend(name[-16:-4] for name in f[SPLITS]["val"][:3]),
    "DS4 error splits/train,splits/val 3",
)
_plant("VOC test in train", "ids", put(f"{VOC}/test", f"{VOC}/train", 2), f"DS2 error {VOC}/train,{VOC}/test 2")
_plant(
    "numbers without zeros",
    "ids",
    lambda f: f.update({"coco/test.txt": [str(int(name[-16:-4])) for name in f[SPLITS]["train"][:50]]}),
)

_plant("val labelled", "semi", put("val", "10pct/labeled", 4), "DS4 error 10pct/labeled,val 4", also="PL7")
_plant("val unlabelled", "semi", put("val", "20pct/unlabeled", 4), "DS4 warning 20pct/unlabeled,val 4", also="PL7")

CLIPS, FOLD = ("testlist02", "trainlist02"), "trainlist02,testlist02"
_plant("test clips in train", "folds", put(*CLIPS, 4, lambda row: f"{row} 5"), f"DS2 error {FOLD} 4", also="PL7")
_plant("a clip of a test video", "folds", put(*CLIPS, 1, lambda row: f"{row[:-6]}09.avi 5"), f"PL7 warning {FOLD} 1")
