"""The hierarchy above ImageNet's 1,000 classes, and the 75 choices of the published tree."""

import json
from pathlib import Path

import networkx as nx

from curation.core.ids import ilsvrc2012_classes
from curation.signals.hierarchy.hierarchy import ancestors, as_tree, dropped_leaves, label, leaves_under
from curation.signals.hierarchy.wordnet import imagenet_dag, imagenet_tree, published_parents
from tests.real_files import real_files

# Leaf counts of the published tree (specification, section 1.3; equal to Tables 3 to 5).
LEAVES = {
    "n02084071": 116, "n02118333": 4, "n02115335": 3, "n02114100": 4, "n02120997": 8, "n02131653": 4, "n02441326": 7,
    "n02370806": 17, "n02469914": 20, "n07555863": 24, "n03791235": 21, "n03183080": 121, "n02087122": 61,
    "n02085374": 8, "n01503061": 52, "n02159955": 27, "n03405725": 21, "n02512053": 16, "n02484322": 13,
    "n02958343": 10, "n04490091": 7, "n13134947": 7, "n12992868": 7, "n02858304": 6, "n03082979": 6, "n01661091": 36,
    "n03051540": 48, "n07707451": 12, "n02686568": 3,
}  # fmt: skip
LOST = {
    "n02084071": ["Italian greyhound", "whippet"],
    "n02087122": ["Italian greyhound", "whippet"],
    "n02120997": ["tabby", "tiger cat", "Persian cat", "Siamese cat", "Egyptian cat"],
    "n03405725": ["pool table"],
    "n03791235": ["golfcart"],
    "n04490091": ["minivan"],
    "n02686568": ["warplane"],
    "n03051540": ["bulletproof vest"],
    "n07707451": ["mashed potato"],
}


def test_classes() -> None:
    classes = ilsvrc2012_classes()
    assert len(classes) == 1000
    assert list(classes) == sorted(set(classes))
    assert (classes[0], classes[65], classes[999]) == ("n01440764", "n01751748", "n15075141")
    assert len(imagenet_dag()) == 1860
    assert not ancestors(imagenet_dag(), classes) - set(imagenet_dag())
    # No class lies below another.
    assert all(not imagenet_dag().pred[one] for one in classes)


def test_leaves_of_each_superclass() -> None:
    assert {node: len(leaves_under(imagenet_tree(), node, ilsvrc2012_classes())) for node in LEAVES} == LEAVES


def test_what_the_published_tree_loses() -> None:
    lost = dropped_leaves(imagenet_dag(), imagenet_tree(), LEAVES, ilsvrc2012_classes())
    names = {node: [label(imagenet_dag(), one)[10:] for one in several] for node, several in lost.items()}
    assert {node: names[node] for node in LOST} == LOST
    assert lost["n02084071"] == ("n02091032", "n02091134")
    assert {node: len(several) for node, several in lost.items() if node not in LOST} == {
        "n01503061": 7,
        "n13134947": 9,
        "n07555863": 3,
        "n03183080": 9,
    }


def test_every_synset_with_several_parents_has_its_choice() -> None:
    several = {node for node in imagenet_dag() if len(imagenet_dag().adj[node]) > 1}
    assert set(published_parents()) == several
    assert len(several) == 75
    assert all(parent in imagenet_dag().adj[child] for child, parent in published_parents().items())


# Specification, section 3.3: child, and the parent to keep; the first parent in data.noun elsewhere.
OVERRIDES = {
    "n02090827": "n02384858", "n02121808": "n01317541", "n02916936": "n02862048", "n03085013": "n03163973",
    "n03445924": "n03446832", "n03483316": "n03251766", "n03602883": "n03163973", "n03724870": "n03206718",
    "n03770679": "n02958343", "n03773504": "n04565375", "n03982430": "n03414162", "n04371774": "n03964744",
    "n04552348": "n03764276", "n07710616": "n07566863", "n07739125": "n13138842",
}  # fmt: skip


def leaves_of_each(tree: "nx.DiGraph[str]") -> dict[str, tuple[str, ...]]:
    return {node: leaves_under(tree, node, ilsvrc2012_classes()) for node in LEAVES}


def test_15_of_the_choices_do_the_work_and_none_of_them_can_go() -> None:
    assert all(published_parents()[child] == parent for child, parent in OVERRIDES.items())
    published = leaves_of_each(imagenet_tree())
    assert leaves_of_each(as_tree(imagenet_dag(), choices=OVERRIDES)) == published
    for child in OVERRIDES:
        fewer = {one: parent for one, parent in OVERRIDES.items() if one != child}
        assert leaves_of_each(as_tree(imagenet_dag(), choices=fewer)) != published, child


@real_files("held")
def check_choices_are_the_golden_ones(shared: Path) -> None:
    golden = json.loads((shared / "golden/imagenet/parent_choice.json").read_text())
    overrides = golden["overrides"]
    assert overrides == OVERRIDES
