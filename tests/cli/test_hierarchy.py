"""``curation hierarchy`` as a user calls it."""

import json
from pathlib import Path

import pytest

from curation.cli import main


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hierarchy", "show", "n02087122", "--depth", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "n02087122 hunting dog"
    assert lines[-1] == "61 leaves below"
    assert not any("greyhound" in line for line in lines)
    assert main(["hierarchy", "show", "hunting dog", "--tree", "dag", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["node"], len(data["leaves"])) == ("n02087122", 63)
    assert {"n02091032", "n02091134"} <= set(data["leaves"])


def test_show_what_lies_above_no_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hierarchy", "show", "physicist.n.01"]) == 2
    assert "--leaves all" in capsys.readouterr().err
    assert main(["hierarchy", "show", "physicist.n.01", "--leaves", "all", "--depth", "1"]) == 0
    assert "nuclear physicist" in capsys.readouterr().out


def test_find(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hierarchy", "find", "crane", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in found][:2] == ["n02012849", "n03126707"]
    assert main(["hierarchy", "find", "xyzzy"]) == 1


def test_similarity(capsys: pytest.CaptureFixture[str]) -> None:
    # Figures of NLTK's documentation for WordNet 3.0: dog and cat.
    assert main(["hierarchy", "similarity", "dog.n.01", "cat.n.01", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["path"] == pytest.approx(0.2)
    assert data["wu_palmer"] == pytest.approx(0.8571428571428571)
    assert data["leacock_chodorow"] == pytest.approx(2.0281482472922856)
    assert data["lowest_common"] == "n02075296 carnivore"


def test_dropped_names_the_greyhounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hierarchy", "dropped", "--json"]) == 0
    lost = json.loads(capsys.readouterr().out)
    assert lost["n02084071"] == ["n02091032", "n02091134"]
    assert main(["hierarchy", "dropped", "dog.n.01"]) == 0
    assert "n02091032 Italian greyhound, n02091134 whippet" in capsys.readouterr().out
    assert main(["hierarchy", "dropped", "--tree", "dag", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {}


def test_a_hierarchy_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges, names, edits = tmp_path / "is_a.txt", tmp_path / "words.txt", tmp_path / "edits.toml"
    edges.write_text("dog hound\nhound greyhound\nracer greyhound\n")
    names.write_text("greyhound\tgrey\x1bhound\n")
    given = ["--edges", str(edges)]
    assert main(["hierarchy", "dropped", "dog", "--tree", "last", *given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"dog": ["greyhound"]}
    assert main(["hierarchy", "dropped", *given]) == 2
    edits.write_text('name = "mine"\nversion = "1"\n[parents]\ngreyhound = ["hound"]\n')
    assert main(["hierarchy", "dropped", "dog", "--tree", "last", *given, "--set", f"edits={edits}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {}
    assert main(["hierarchy", "show", "dog", *given, "--set", f"names={names}"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("action", ["show", "dropped"])
def test_a_leaf_that_the_hierarchy_lacks_is_told(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges, leaves = tmp_path / "is_a.txt", tmp_path / "leaves.txt"
    edges.write_text("dog hound\ndog poodle\n")
    leaves.write_text("hound\nwhippet\n")
    assert main(["hierarchy", action, "dog", "--edges", str(edges), "--leaves", str(leaves)]) == 2
    assert "'whippet'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["show", "n02087122", "--depth", "99"],
        ["show", "crane"],
        ["show", "dog.n.01", "--leaves", "/nowhere"],
        ["similarity", "dog.n.01", "xyzzy"],
        ["find", "dog", "--set", "names=x"],
        ["find", "dog", "--edges", "x", "--set", "wordnet=y"],
        ["find", "dog", "--set", "wordnet=/nowhere"],
    ],
)
def test_wrong_use(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hierarchy", *wrong]) == 2
    assert capsys.readouterr().err.startswith("error: ")
