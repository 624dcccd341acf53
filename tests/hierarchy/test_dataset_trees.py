"""Trees that data sets bring along."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.errors import HierarchyError
from curation.hierarchy.class_trees import read_open_images, read_open_images_names
from curation.hierarchy.hierarchy import parents
from tests.real_files import real_files

TREE = {
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
    path = write(tmp_path, TREE)
    graph = read_open_images(path)
    assert parents(graph, "/m/taxi") == ("/m/car", "/m/boat")
    assert parents(graph, "/m/wheel") == ("/m/root",)
    assert parents(read_open_images(path, parts=True), "/m/wheel") == ("/m/car", "/m/root")


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
    graph = read_open_images(folder / "bbox_labels_600_hierarchy.json", parts=True)
    assert sum(label in graph for label in read_open_images_names(folder / "class-descriptions-boxable.csv")) == 601
    (root,) = [node for node in graph if not graph.adj[node]]
    assert root == "/m/0bl9f"
