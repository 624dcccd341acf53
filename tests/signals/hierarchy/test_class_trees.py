"""Trees that data sets and papers bring along: edge lists, Open Images, and the readings of a super-class."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import HierarchyError, MissingFileError
from curation.core.ids import ilsvrc2012_classes
from curation.signals.hierarchy.hierarchy import (
    as_tree,
    leaves_under,
    parents,
    read_edge_list,
    read_open_images,
    superclass,
)
from curation.signals.hierarchy.wordnet import imagenet_dag, imagenet_tree
from tests.real_files import real_files


def write_edges(folder: Path, text: str, name: str = "is_a.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def test_last_edge_wins(tmp_path: Path) -> None:
    path = write_edges(tmp_path, "# a comment\nhound greyhound\n\nracer greyhound\r\nhound dummy32\nhound greyhound\n")
    graph = read_edge_list(path)
    assert parents(graph, "greyhound") == ("racer", "hound")
    assert list(as_tree(graph, "last").adj["greyhound"]) == ["hound"]
    assert list(as_tree(graph, "first").adj["greyhound"]) == ["racer"]


def test_names(tmp_path: Path) -> None:
    names = write_edges(tmp_path, "greyhound\tgreyhound, Canis familiaris\nstranger\tnot there\n", "words.txt")
    graph = read_edge_list(write_edges(tmp_path, "hound greyhound\n"), names)
    assert graph.nodes["greyhound"]["lemmas"] == "greyhound Canis_familiaris"
    assert "stranger" not in graph


def test_the_published_tree_comes_from_an_edge_list_in_which_the_last_edge_wins(tmp_path: Path) -> None:
    dag, tree = imagenet_dag(), imagenet_tree()
    lines = [f"{parent} {child}" for child, parent in dag.edges if not tree.has_edge(child, parent)]
    lines += [f"{parent} {child}" for child, parent in tree.edges]
    graph = read_edge_list(write_edges(tmp_path, "\n".join(lines)))
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
        read_edge_list(write_edges(tmp_path, text))


def test_bytes_that_are_no_text_and_files_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "is_a.txt"
    with pytest.raises(MissingFileError):
        read_edge_list(path)
    path.write_bytes(b"a \xff\n")
    with pytest.raises(HierarchyError, match="UTF-8"):
        read_edge_list(path)


FAMILY = {
    "LabelName": "/m/root",
    "Subcategory": [
        {"LabelName": "/m/car", "Subcategory": [{"LabelName": "/m/taxi"}], "Part": [{"LabelName": "/m/wheel"}]},
        {"LabelName": "/m/wheel"},
        {"LabelName": "/m/boat", "Subcategory": [{"LabelName": "/m/taxi"}]},
    ],
}


def write(folder: Path, content: Any) -> Path:
    path = folder / "tree.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_subcategories_are_kinship_and_parts_are_not(tmp_path: Path) -> None:
    path = write(tmp_path, FAMILY)
    graph = read_open_images(path)
    assert parents(graph, "/m/taxi") == ("/m/car", "/m/boat")
    assert parents(graph, "/m/wheel") == ("/m/root",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "hierarchy cannot be read"),
        ("[" * 100_000, "hierarchy cannot be read"),
        ({"Subcategory": []}, "hierarchy cannot be read"),
        ({"LabelName": 3}, "hierarchy cannot be read"),
        ({"LabelName": "/m/a", "Subcategory": {"LabelName": "/m/b"}}, "hierarchy cannot be read"),
        ({"LabelName": "/m/a", "Subcategory": ["/m/b"]}, "hierarchy cannot be read"),
        ({"LabelName": "a", "Subcategory": [{"LabelName": "b", "Subcategory": [{"LabelName": "a"}]}]}, "cycle"),
    ],
)
def test_hostile_trees(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        read_open_images(write(tmp_path, content))


@real_files("openimages")
def check_open_images_has_601_boxable_classes(shared: Path) -> None:
    folder = shared / "data/openimages"
    graph = read_open_images(folder / "bbox_labels_600_hierarchy.json")
    with (folder / "class-descriptions-boxable.csv").open(encoding="utf-8", newline="") as names:
        assert sum(label in graph for label, *_ in csv.reader(names)) == 601
    (root,) = [node for node in graph if not graph.adj[node]]
    assert root == "/m/0bl9f"


TREE = {
    "LabelName": "/m/root",
    "Subcategory": [
        {
            "LabelName": "/m/vehicle",
            "Subcategory": [
                {"LabelName": "/m/car", "Subcategory": [{"LabelName": "/m/taxi"}, {"LabelName": "/m/van"}]},
                {"LabelName": "/m/cab", "Subcategory": [{"LabelName": "/m/taxi"}]},
                {"LabelName": "/m/bike", "Part": [{"LabelName": "/m/wheel"}]},
            ],
            "Part": [{"LabelName": "/m/plate"}],
        },
        {"LabelName": "/m/wheel"},
    ],
}


def test_leaves_are_counted_once_and_parts_are_none(tmp_path: Path) -> None:
    assert superclass(write(tmp_path, TREE), "/m/vehicle") == ("/m/bike", "/m/taxi", "/m/van")


@real_files("openimages")
def check_the_real_tree(shared: Path) -> None:
    tree = shared / "data/openimages/bbox_labels_600_hierarchy.json"
    assert len(superclass(tree, "/m/0jbk")) == 96
    assert len(superclass(tree, "/m/07yv9")) == 24


def test_what_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, TREE)
    with pytest.raises(HierarchyError, match="no such node"):
        superclass(path, "Vehicle")
    with pytest.raises(HierarchyError, match="no descendants"):
        superclass(path, "/m/taxi")
