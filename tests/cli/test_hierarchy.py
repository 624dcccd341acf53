"""``curation hierarchy`` as a user calls it."""

from pathlib import Path

import pytest

from curation.cli import main
from tests.shell import Shell


def test_show(shell: Shell) -> None:
    lines = shell.out("hierarchy", "show", "n02087122", "--depth", "2").splitlines()
    assert lines[0] == "n02087122 hunting dog"
    assert lines[-1] == "61 leaves below"
    assert not any("greyhound" in line for line in lines)
    data = shell.data("hierarchy", "show", "hunting dog", "--tree", "dag", "--json")
    assert (data["node"], len(data["leaves"])) == ("n02087122", 63)
    assert {"n02091032", "n02091134"} <= set(data["leaves"])


def test_show_what_lies_above_no_class(shell: Shell) -> None:
    assert "--leaves all" in shell.err("hierarchy", "show", "physicist.n.01")
    assert "nuclear physicist" in shell.out("hierarchy", "show", "physicist.n.01", "--leaves", "all", "--depth", "1")


def test_find(shell: Shell) -> None:
    found = shell.data("hierarchy", "find", "crane", "--json")
    assert [one["id"] for one in found][:2] == ["n02012849", "n03126707"]
    assert main(["hierarchy", "find", "xyzzy"]) == 1
    assert shell.out("hierarchy", "find", "fire truck").startswith("1 node\n")


def test_similarity(shell: Shell) -> None:
    # Figures of NLTK's documentation for WordNet 3.0: dog and cat.
    data = shell.data("hierarchy", "similarity", "dog.n.01", "cat.n.01", "--json")
    assert data["wu_palmer"] == pytest.approx(0.8571428571428571)
    assert data["lowest_common"] == "n02075296 carnivore"


def test_dropped_names_the_greyhounds(shell: Shell) -> None:
    lost = shell.data("hierarchy", "dropped", "--json")
    assert lost["n02084071"] == ["n02091032", "n02091134"]
    assert "n02091032 Italian greyhound, n02091134 whippet" in shell.out("hierarchy", "dropped", "dog.n.01")
    assert shell.data("hierarchy", "dropped", "--tree", "dag", "--json") == {}


def test_a_hierarchy_of_ones_own(tmp_path: Path, shell: Shell) -> None:
    edges, names = tmp_path / "is_a.txt", tmp_path / "words.txt"
    edges.write_text("dog hound\nhound greyhound\nracer greyhound\n")
    names.write_text("greyhound\tgrey\x1bhound\n")
    given = ["--edges", str(edges)]
    assert shell.data("hierarchy", "dropped", "dog", "--tree", "last", *given, "--json") == {"dog": ["greyhound"]}
    assert main(["hierarchy", "dropped", *given]) == 2
    assert "\x1b" not in shell.err("hierarchy", "show", "dog", *given, "--set", f"names={names}")


@pytest.mark.parametrize(
    "wrong",
    [
        ["show", "n02087122", "--depth", "99"],
        ["show", "crane"],
        ["show", "dog.n.01", "--leaves", "/nowhere"],
        ["similarity", "dog.n.01", "xyzzy"],
        ["find", "dog", "--set", "names=x"],
        ["find", "dog", "--set", "wordnet=nltk"],
    ],
)
def test_wrong_use(wrong: list[str], shell: Shell) -> None:
    assert shell.err("hierarchy", *wrong).startswith("error: ")
