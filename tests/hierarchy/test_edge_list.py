"""Edge lists: ``parent child`` lines, in which the last parent of a child may win."""

from pathlib import Path

import pytest

from curation.errors import HierarchyError, MissingFileError
from curation.hierarchy.class_trees import read_edge_list
from curation.hierarchy.hierarchy import as_tree, leaves_under, parents
from curation.hierarchy.wordnet import imagenet_dag, imagenet_tree
from curation.ilsvrc2012 import ilsvrc2012_classes


def write(folder: Path, text: str, name: str = "is_a.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def test_last_edge_wins(tmp_path: Path) -> None:
    path = write(tmp_path, "# a comment\nhound greyhound\n\nracer greyhound\r\nhound dummy32\nhound greyhound\n")
    graph = read_edge_list(path)
    assert parents(graph, "greyhound") == ("racer", "hound")
    assert list(as_tree(graph, "last").adj["greyhound"]) == ["hound"]
    assert list(as_tree(graph, "first").adj["greyhound"]) == ["racer"]


def test_names(tmp_path: Path) -> None:
    names = write(tmp_path, "greyhound\tgreyhound, Canis familiaris\nstranger\tnot there\n", "words.txt")
    graph = read_edge_list(write(tmp_path, "hound greyhound\n"), names)
    assert graph.nodes["greyhound"]["lemmas"] == "greyhound Canis_familiaris"
    assert "stranger" not in graph


def test_the_published_tree_comes_from_an_edge_list_in_which_the_last_edge_wins(tmp_path: Path) -> None:
    dag, tree = imagenet_dag(), imagenet_tree()
    lines = [f"{parent} {child}" for child, parent in dag.edges if not tree.has_edge(child, parent)]
    lines += [f"{parent} {child}" for child, parent in tree.edges]
    graph = read_edge_list(write(tmp_path, "\n".join(lines)))
    again = as_tree(graph, "last")
    for node in ("n02084071", "n03183080", "n13134947"):
        assert leaves_under(again, node, ilsvrc2012_classes()) == leaves_under(tree, node, ilsvrc2012_classes())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\nb c\nc a\n", "cycle"),
        ("a a\n", "Malformed line"),
        ("a b c\n", "Malformed line"),
        ("a\n", "Malformed line"),
        ("a \x1b[31mb\n", "Malformed line"),
        (f"a {'b' * 300}\n", "Malformed line"),
        ("", "empty"),
    ],
)
def test_hostile_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        read_edge_list(write(tmp_path, text))


def test_bytes_that_are_no_text_and_files_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "is_a.txt"
    with pytest.raises(MissingFileError):
        read_edge_list(path)
    path.write_bytes(b"a \xff\n")
    with pytest.raises(HierarchyError, match="UTF-8"):
        read_edge_list(path)


def test_a_chain_of_many_thousands_is_no_trouble(tmp_path: Path) -> None:
    graph = read_edge_list(write(tmp_path, "".join(f"n{one} n{one + 1}\n" for one in range(20_000))))
    assert leaves_under(graph, "n0") == ("n20000",)
