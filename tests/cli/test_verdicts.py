"""Verdicts of others at the shell: a table becomes decisions, a cleaned list, and the score with and without."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from curation.review.decisions.files import read_decisions
from tests.real_files import provided, real_files
from tests.shell import Shell
from tests.worlds.verdicts import TEXTURES, lay

CODES = "o=keep,i=remove,I=remove,u=unsure,q=unsure,oo=unsure,lo=unsure,d=unsure,b=unsure"
READ = ["--key", "image_id=image_location,action=decision", "--codes", CODES, "--on-error", "blank=skip",
        "--stage", "manual", "--reviewer", "NINCO"]  # fmt: skip


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    command = ["review", "summary", "textures.csv", *READ, "--dataset", "textures", "--out", "ninco.jsonl"]
    assert main(command) == 0
    return tmp_path


def test_a_table_is_told_row_by_row_and_matched_to_a_manifest(world: Path, shell: Shell) -> None:
    command = ["review", "summary", "textures.csv", *READ, "--dataset", "textures", "--manifest", "textures"]
    told = shell.data(*command, "--json")
    (file,) = told["files"]
    assert {one["code"]: one["rows"] for one in file["codes"]} == {"o": 25, "i": 3, "u": 3, "": 1}
    (part,) = told["coverage"]["parts"]
    assert part == {
        "part": "textures", "images": 60, "judged": 30, "unjudged": 30, "keep": 25, "remove": 2, "unsure": 3,
        "minus-remove": 58, "minus-remove-and-unsure": 55, "judged-keep-only": 25,
    }  # fmt: skip
    assert told["coverage"]["note"] == "Unjudged is not clean"
    assert told["staleness"]["gone"] == ["dtd:bubbly/bubbly_0001"]
    shown = shell.out(*command)
    assert "Unjudged is not clean" in shown
    assert "Unjudged is not clean" in shell.out(*command[:-2])
    assert main([*command, "--strict"]) == 1


@pytest.mark.parametrize(
    ("variant", "left", "name"),
    [
        ("minus-remove", TEXTURES[2:], "textures-ninco-minus-2"),
        ("minus-remove-and-unsure", TEXTURES[2:22] + TEXTURES[25:], "textures-ninco-minus-2-and-3-unsure"),
        ("judged-keep-only", TEXTURES[2:22] + TEXTURES[25:30], "textures-ninco-judged-keep-25"),
    ],
)
def test_three_cleaned_lists(world: Path, shell: Shell, variant: str, left: Sequence[str], name: str) -> None:
    command = ["review", "apply", "textures", "--decisions", "ninco.jsonl", "--cleaned", variant]
    told = shell.data(*command, "--out", "made", "--json")
    made = read_manifest(world / "made")
    header = made.header
    assert (header.name, header.version, header.supersedes, told["name"]) == (name, "1.0.0", None, name)
    assert made.ids("textures") == tuple(f"dtd:{path.removesuffix('.jpg')}" for path in left)
    assert header.rule.parameters["review_judged"] == ("textures=30",)
    assert header.rule.parameters["review_unjudged"] == ("textures=30",)
    notes = " ".join(header.notes)
    assert "Unjudged is not clean: 30 of 60 images of textures were judged" in notes
    assert ("it is clean by these verdicts" in notes) == (variant == "judged-keep-only")
    assert ("not clean: what the verdicts remove" in notes) == (variant != "judged-keep-only")
    assert told["coverage"]["note"] == "Unjudged is not clean"
    assert "Unjudged is not clean" in shell.out(*command, "--out", "again")
    assert (world / "again/manifest.json").read_bytes() == (world / "made/manifest.json").read_bytes()
    assert "Unjudged is not clean" in shell.out("show", "made")
    assert "curation review apply --cleaned" in shell.out("verify", "made", "--rebuild")


WRONG = [
    (["apply", "textures", "--decisions", "other.jsonl", "--cleaned", "minus-remove"], "No decision is on an image"),
    (["apply", "textures", "--decisions", "textures.csv", "--version", "2.0.0"], "--key image_id=COLUMN"),
    (["apply", "textures", "--decisions", "ninco.jsonl"], "--cleaned"),
    (["apply", "textures", "--decisions", "ninco.jsonl", "--version", "2.0.0", "--name", "x"], "--cleaned"),
    (["apply", "textures", "--decisions", "ninco.jsonl", "--cleaned", "minus-remove", "--version", "one"], "MAJOR.MIN"),
    (["apply", "textures", "--decisions", "ninco.jsonl", "--cleaned", "minus-remove", "--name", "A list"], "name"),
    (["apply", "none", "--decisions", "ninco.jsonl", "--version", "2.0.0"], "No such manifest"),
    (["apply", "textures", "--decisions", "ninco.jsonl", "--lines", "l.txt"], "curation export"),
    (["summary", "textures.csv", *READ[:2], "--codes", "o=keep"], "row 2: decision"),
]


@pytest.mark.parametrize(("words", "told"), WRONG, ids=range(len(WRONG)))
def test_wrong_uses_are_told(world: Path, shell: Shell, words: list[str], told: str) -> None:
    (world / "other.csv").write_text("image_location,decision\nplaces/sky/1.jpg,i\n")
    assert main(["review", "summary", "other.csv", *READ, "--dataset", "elsewhere", "--out", "other.jsonl"]) == 0
    assert told in shell.err("review", *words, "--out", "out")
    assert not (world / "out").exists()


@provided
def ninco(shared: Path) -> Path:
    """The folder of NINCO's verdict files."""
    return shared / "data/atlas/ninco/cleaning_annotations"


@real_files("verdicts")
def check_every_code_of_12050_rows(ninco: Path, shell: Shell, tmp_path: Path) -> None:
    """The code table of the specification, section (c): class files, subsamples, both."""
    files = {kind: sorted(map(str, (ninco / f"annotations_{kind}").glob("*.csv")))
             for kind in ("potential_OOD_classes", "subsampled_datasets")}  # fmt: skip
    expected = {
        "potential_OOD_classes": {"o": 4293, "i": 3712, "u": 990, "q": 563, "": 74, "I": 1, "oo": 3, "lo": 2, "d": 2},
        "subsampled_datasets": {"o": 1676, "i": 661, "u": 68, "q": 4, "b": 1},
    }
    rows = 0
    for kind, paths in files.items():
        told = shell.data("review", "summary", *paths, *READ, "--json")
        found = Counter[str]()
        for one in told["files"]:
            found.update({code["code"]: code["rows"] for code in one["codes"]})
        assert found == expected[kind]
        rows += sum(one["rows"] for one in told["files"])
        assert sum(one["rows"] for one in told["files"]) == {4: 9640, 6: 2410}[6 if kind[0] == "s" else 4]
    assert rows == 12_050
    told = shell.data(
        "review", "summary", *files["potential_OOD_classes"], *files["subsampled_datasets"], *READ, "--json"
    )
    assert len(told["files"]) == 52
    repeated = {one["name"]: one["repeated"] for one in told["files"] if one["repeated"]}
    assert {name: len(images) for name, images in repeated.items()} == {"OOD_Places_MOS.csv": 5}
    conflict = "ood_places_mos:i_ice_floe/00000212"
    assert [one["image_id"] for one in told["resolution"]["conflicts"]] == [conflict]
    assert told["resolution"]["conflicts"][0]["votes"] == {"keep": [""], "remove": [""]}
    assert told["resolution"]["decisions"] == 12_050 - 74 - 4
    # An unnamed reviewer's verdicts that differ are not written without a rule, and are left open by one.
    command = ["review", "summary", *files["subsampled_datasets"], *READ, "--out", str(tmp_path / "all.jsonl")]
    assert main(command) == 2
    assert main([*command, "--rule", "majority"]) == 0
    kept = [one for one in read_decisions(tmp_path / "all.jsonl").decisions if one.action == "keep"]
    assert Counter(one.dataset for one in kept) == {
        "textures": 288, "openimage_o": 368, "imagenet_o": 309, "ood_inaturalist_mos": 383, "all_species": 172,
        "ood_places_mos": 153 - 1,
    }  # fmt: skip
    counts = {one["name"]: {code["code"]: code["rows"] for code in one["codes"]} for one in told["files"]}
    for name, stated in {
        "spaghetti_bolognese": {"i": 928, "o": 67, "u": 5},
        "waffles": {"i": 915, "o": 61, "u": 24},
        "Caracal caracal caracal": {"o": 100, "u": 4, "q": 100},
        "textures": {"o": 288, "i": 99, "u": 13},
        "openimage_o": {"o": 368, "i": 19, "u": 12, "b": 1},
        "imagenet_o": {"o": 309, "i": 78, "u": 10, "q": 3},
        "OOD_iNaturalist_MOS": {"o": 383, "i": 10, "u": 6, "q": 1},
        "all_species": {"o": 172, "i": 228},
        "OOD_Places_MOS": {"o": 156, "i": 227, "u": 27},
    }.items():
        assert counts[f"{name}.csv"] == stated


LISTS = {
    "textures": ("textures", 5160, 373, (288, 72, 13), (5088, 5075, 288)),
    "openimage_o": ("openimage_o", 15869, 355, (327, 16, 12), (15853, 15841, 327)),
    "inaturalist": ("OOD_iNaturalist_MOS", 10000, 400, (383, 10, 7), (9990, 9983, 383)),
}
"""Part: verdict file, images, judged, kept, removed and unsure, images of the three cleaned lists."""


@real_files("verdicts")
def check_parts_of_the_published_manifest(ninco: Path, shared: Path, shell: Shell, tmp_path: Path) -> None:
    """The second table of section (c); the verdicts on one of eleven parts leave the others as they are."""
    folder, manifest = shared / "data/atlas/openood/imagenet", tmp_path / "m"
    assert main(["import", "openood/imagenet-1k-published", "--lists", str(folder), "--out", str(manifest)]) == 0
    variants = ("minus-remove", "minus-remove-and-unsure", "judged-keep-only")
    for name, (file, images, judged, said, left) in LISTS.items():
        table, verdicts = ninco / f"annotations_subsampled_datasets/{file}.csv", tmp_path / f"{name}.jsonl"
        given = ["review", "summary", str(table), *READ, "--dataset", name, "--manifest", str(manifest)]
        told = shell.data(*given, "--out", verdicts, "--json")
        (part,) = told["coverage"]["parts"]
        assert (part["part"], part["images"], part["judged"]) == (name, images, judged)
        assert (part["keep"], part["remove"], part["unsure"]) == said
        assert tuple(part[variant] for variant in variants) == left
        if name == "textures":
            gone = Counter(one.partition(":")[2].partition("/")[0] for one in told["staleness"]["gone"])
            assert gone == {"honeycombed": 9, "spiralled": 9, "bubbly": 5, "cobwebbed": 4}
    command = ["review", "apply", manifest, "--decisions", tmp_path / "textures.jsonl", "--cleaned", "minus-remove"]
    told = shell.data(*command, "--out", tmp_path / "cleaned", "--json")
    assert told["name"] == "openood/imagenet-1k-published-ninco-minus-72"
    before, after = read_manifest(manifest), read_manifest(tmp_path / "cleaned")
    assert {name for name in before.lists if before.lists[name] != after.lists[name]} == {"textures"}
    assert len(after.ids("textures")) == 5088
