"""A benchmark of lists alone is a TOML of the user's: built of the authors' files, refused where it is no such file."""

from pathlib import Path

import pytest

import curation
from curation.core.errors import CurationError

DECLARED = """
[paper]
title = "Lists"
authors = "A. B."
year = 2026
venue = "arXiv"
bibtex = "@misc{a, title={Lists}}"

[published.mine]
name = "mybench/lists"
title = "Images chosen by hand"
taxonomy = "OSC"
known = "ilsvrc2012"
lists = { dataset = "my_lists", part = "all", note = "" }
datasets = { near = ["imagenet21k", "winter21"] }

[[published.mine.parts]]
name = "near"
file = "near.txt"
role = "test"
sources = ["near"]
selection = "Chosen by hand."

[[published.mine.figures]]
name = "near.images"
place = "the paper"
paper = [2]
"""


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/near.txt").write_text("n01580870_12\nn01580870_13\n")
    return tmp_path / "lists"


def test_lists_are_built_without_python(tmp_path: Path, lists: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DECLARED)
    made = curation.build(path, sources={"published-lists": lists}, version="2.0.0")
    assert made.ids("near") == ("imagenet21k:n01580870_12", "imagenet21k:n01580870_13")
    assert (made.header.name, made.header.version, made.header.origin) == ("mybench/lists", "2.0.0", "as_published")
    assert [(one.paper, one.obtained) for one in made.header.figures] == [(2, 2)]
    assert (len(made.header.classes), {one.role for one in made.header.classes}) == (1000, {"known"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"test"', '"tset"'), "cannot be read"),
        (("selection =", "selections ="), "cannot be read"),
        (("[published.mine]", "[published.one.mine]"), "declares several lists"),
        (('role = "test"', 'role = "test"\nview = "x"'), "Unknown view"),
        (('"near.txt"', '"{0.__class__}.txt"'), "class"),
        (('"ilsvrc2012"', '"nowhere"'), "nowhere"),
        (('"near.txt"', '"far.txt"'), "far.txt"),
        (('role = "test"', f'role = "test"\nsha256 = "sha256:{"0" * 64}"'), "write its new digest into the file"),
        (('known = "ilsvrc2012"', 'tasks = "t"'), "Unknown tasks"),
        (("[paper]", "[paper"), "not TOML"),
    ],
)
def test_declarations_that_are_refused(tmp_path: Path, lists: Path, change: tuple[str, str], words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DECLARED.replace(*change))
    with pytest.raises(CurationError) as caught:
        curation.build(path, sources={"published-lists": lists})
    assert words in str(caught.value)
