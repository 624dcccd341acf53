from pathlib import Path

import msgspec
import pytest

from curation.benchmarks.rules.benchmark_file import read_benchmark_file
from curation.core.errors import CurationError
from curation.review.decisions.guide import Guide, guide_in, read_guide
from tests.worlds.listed_manifest import manifest_of_lists

WHOLE = """# Does the photo show a horse?

For the reader of this file.

## Near
An animal
with hooves.

## far
Anything else.

## remove
A horse.

## Reasons

1. toy
2. mirror image
"""
GUIDE = Guide(
    question="Does the photo show a horse?",
    near="An animal with hooves.",
    far="Anything else.",
    remove="A horse.",
    reasons=("toy", "mirror image"),
)
TABLE = """rule = "near-far"
[guide]
question = "Does the photo show a horse?"
near = "An animal with hooves."
far = "Anything else."
remove = "A horse."
reasons = ["toy", "mirror image"]
"""


@pytest.mark.parametrize(("name", "text"), [("guide.md", WHOLE), ("mine.toml", TABLE)])
def test_a_guide_is_markdown_or_a_table_of_a_benchmark_file(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_guide(tmp_path / name) == GUIDE
    assert GUIDE.meanings() == {"near": GUIDE.near, "far": GUIDE.far, "remove": GUIDE.remove}


def test_a_manifest_bears_the_guide_of_its_benchmark_file(tmp_path: Path) -> None:
    sources = '\n[classes]\nknown = ["horse"]\n[sources.id]\nas = "id"\n[sources.ood]\nas = "near-far"\n'
    path = tmp_path / "mine.toml"
    path.write_text(TABLE.replace("[guide]", 'name = "own/animals"' + sources + "[guide]"))
    made = manifest_of_lists({"far": ["coco:1"]}, name="pair", source="coco", namespace="coco", classes=()).header
    assert guide_in(made, "manual") is None
    rule = msgspec.structs.replace(made.rule, parameters={"file": read_benchmark_file(str(path))})
    assert guide_in(msgspec.structs.replace(made, rule=rule), "manual") == GUIDE


def test_an_override_has_no_far(tmp_path: Path) -> None:
    (tmp_path / "g.md").write_text(WHOLE.replace("## far\nAnything else.\n", ""))
    assert read_guide(tmp_path / "g.md", "auto_override").far == ""
    with pytest.raises(CurationError, match="does not say what 'far' means"):
        read_guide(tmp_path / "g.md")


WRONG = {
    "no question": (WHOLE.partition("\n")[2], "begins without a heading"),
    "two questions": (WHOLE + "\n# Another?\n", "unknown or repeated"),
    "an unknown heading": (WHOLE + "\n## maybe\nx\n", "is unknown"),
    "an empty meaning": (WHOLE.replace("A horse.\n", "\n"), "does not say what 'remove' means"),
    "a number left out": (WHOLE.replace("2. mirror", "3. mirror"), "Malformed list of reasons"),
    "a bullet": (WHOLE.replace("2. mirror", "- mirror"), "Malformed list of reasons"),
    "ten reasons": (WHOLE + "".join(f"{n}. r{n}\n" for n in range(3, 11)), "Too many reasons"),
    "a reason twice": (WHOLE.replace("mirror image", "toy"), "or a repeated one"),
    "a reason that is an undo": (WHOLE.replace("mirror image", "undo: it"), "may not begin with 'undo'"),
    "a long text": (WHOLE.replace("A horse.", "A horse. " * 99), "empty, long or unprintable"),
    "a question without words": (WHOLE.replace("Does the photo show a horse?", ""), "empty, long or unprintable"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_guide_that_is_wrong_is_refused(case: str, tmp_path: Path) -> None:
    text, message = WRONG[case]
    (tmp_path / "g.md").write_text(text)
    with pytest.raises(CurationError, match=message):
        read_guide(tmp_path / "g.md")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.txt", WHOLE, "Not a guide"),
        ("g.toml", 'rule = "lists"', "has no guide"),
        ("g.toml", "[guide", "not TOML"),
        ("g.toml", TABLE + 'colour = "red"\n', "Malformed guide"),
    ],
)
def test_another_file_is_no_guide(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CurationError, match=message):
        read_guide(tmp_path / name)
