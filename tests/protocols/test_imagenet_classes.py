"""Known, negative and unknown classes: the published lists, the rival readings, and rules of one's own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import networkx as nx
import pytest

from curation.benchmarks.imagenet import PROTOCOLS
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, Classes
from curation.benchmarks.rules.hierarchy import ROLES, RolePartition, partition_classes, roles_of
from curation.cli import main
from curation.core.errors import ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.locate import manifest_folders
from curation.manifest.manifest import read_manifest
from curation.signals.hierarchy.hierarchy import as_tree, leaves_under
from curation.signals.hierarchy.wordnet import imagenet_dag
from tests.real_files import real_files

COUNTS = {"p1": (116, 67, 166), "p2": (30, 31, 55), "p3": (151, 97, 164)}
P3_BY_SUPERCLASS = [
    ("n02084071", 58, 39, 19),
    ("n01503061", 26, 17, 9),
    ("n02159955", 14, 9, 4),
    ("n03405725", 11, 7, 3),
    ("n02512053", 8, 5, 3),
    ("n02484322", 7, 4, 2),
    ("n02958343", 5, 3, 2),
    ("n02120997", 4, 3, 1),
    ("n04490091", 4, 2, 1),
    ("n13134947", 4, 2, 1),
    ("n12992868", 4, 2, 1),
    ("n02858304", 3, 2, 1),
    ("n03082979", 3, 2, 1),
]


def sizes(classes: RolePartition) -> tuple[int, int, int]:
    return len(classes.known), len(classes.negative), len(classes.unknown)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_counts_of_tables_3_to_5(name: str) -> None:
    classes, _ = roles_of(PROTOCOLS[name], ilsvrc2012_classes())
    assert sizes(classes) == COUNTS[name]
    labels = classes.labels()
    assert len(labels) == sum(COUNTS[name])
    assert [wnid for wnid, label in labels.items() if label >= 0] == sorted(classes.known)
    assert sorted(label for label in labels.values() if label >= 0) == list(range(len(classes.known)))
    assert not {"n02091032", "n02091134"} & set(labels)


@real_files("held")
@pytest.mark.parametrize("name", PROTOCOLS)
def check_the_published_lists(shared: Path, name: str) -> None:
    golden = json.loads((shared / "golden/imagenet/class_lists.json").read_text())[name.upper()]
    classes, _ = roles_of(PROTOCOLS[name], ilsvrc2012_classes())
    for role in ROLES:
        assert list(getattr(classes, role)) == sorted(golden[role])


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        ("dag", {"p1": (118, 72, 179), "p2": (31, 32, 60), "p3": (162, 104, 173)}),
        ("first", {"p1": (118, 72, 172), "p2": (31, 32, 60), "p3": (154, 99, 168)}),
        ("last", {"p1": (116, 67, 158), "p2": (30, 31, 55), "p3": (159, 102, 167)}),
    ],
)
def test_rival_hierarchies_give_other_lists(reading: str, expected: Mapping[str, Any]) -> None:
    graph = imagenet_dag() if reading == "dag" else as_tree(imagenet_dag(), "last" if reading == "last" else "first")
    assert {name: sizes(classes_below(graph, name)) for name in PROTOCOLS} == expected
    # The rule takes a class below two super-classes once.
    counts = {name: sizes(roles_of(file, ilsvrc2012_classes(), graph)[0]) for name, file in PROTOCOLS.items()}
    assert counts == (expected | {"p3": (163, 103, 173)} if reading == "dag" else expected)


def classes_below(graph: Any, name: str) -> RolePartition:
    """Return the classes of a protocol, each in every super-class that it lies below."""
    below = {
        role: [leaves_under(graph, node, ilsvrc2012_classes()) for node in PROTOCOLS[name].classes.of(role)]
        for role in ROLES
    }
    negative, unknown = ([leaf for leaves in below[role] for leaf in leaves] for role in ROLES[1:])
    return partition_classes(below["known"], negative, unknown, PROTOCOLS[name].parameters["cut"], hint="")


def test_a_missing_class_would_shift_all_later_ones() -> None:
    whole, _ = roles_of(PROTOCOLS["p2"], ilsvrc2012_classes())
    fewer, _ = roles_of(PROTOCOLS["p2"], [wnid for wnid in ilsvrc2012_classes() if wnid != whole.known[0]])
    assert whole.negative[0] not in whole.known
    assert len(fewer.known) == 30
    assert fewer.known[-1] == whole.negative[0]


@pytest.fixture
def drawn() -> Any:
    graph: nx.DiGraph[str] = nx.DiGraph(origin="drawn")
    for place in range(8):
        graph.add_edge(f"a{place}", "animal")
    graph.add_edge("t0", "thing")
    graph.add_edge("a7", "thing")
    return graph


def file_of(cut: str, **classes: tuple[str, ...]) -> BenchmarkFile:
    """Return a benchmark file with a cut and super-classes by role."""
    return msgspec.structs.replace(PROTOCOLS["p1"], classes=Classes(**classes), parameters={"cut": cut})


@pytest.mark.parametrize(
    ("cut", "known", "negative", "unknown"),
    [
        ("whole", "01234567", "", ""),
        ("halves", "0123", "4567", ""),
        ("sixths", "0246", "157", "3"),
        ("KNKUKN", "0246", "157", "3"),
        ("KNU", "036", "147", "25"),
        ("KKKN", "012456", "37", ""),
    ],
)
def test_cuts(drawn: Any, cut: str, known: str, negative: str, unknown: str) -> None:
    leaves = [*(f"a{place}" for place in range(8)), "t0"]
    classes, _ = roles_of(file_of(cut, known=("animal",), unknown=("t0",)), leaves, drawn)
    assert ["".join(name[1] for name in getattr(classes, role) if name != "t0") for role in ROLES] == [
        known,
        negative,
        unknown,
    ]


def test_a_class_in_two_roles_is_refused(drawn: Any) -> None:
    leaves = [*(f"a{place}" for place in range(8)), "t0"]
    with pytest.raises(ProtocolError, match="below super-classes of several roles"):
        roles_of(file_of("whole", known=("animal",), unknown=("thing",)), leaves, drawn)


def test_no_known_class_is_refused(drawn: Any) -> None:
    with pytest.raises(ProtocolError, match="at or below a super-class"):
        roles_of(file_of("whole", known=("animal",), unknown=("thing",)), ["t0"], drawn)


ROOT = Path(__file__).parents[2] / "manifests"
FOLDERS = {name: folder for name, folder in manifest_folders([ROOT]).items() if name.startswith("imagenet/")}


@real_files("imagenet_manifests")
@pytest.mark.parametrize("name", FOLDERS)
def check_they_are_made_again_to_the_same_digest(shared: Path, tmp_path: Path, name: str) -> None:
    data, protocol = shared / "data/imagenet", name.partition("/")[2][:2]
    train = "p2_train_names.json" if name == "imagenet/p2@1.0.0" else "train_counts.json"
    settings = [f"--set=protocol={protocol}", *(["--set=hierarchy=dag"] if "-dag" in name else [])]
    sources = [f"--source=imagenet-train={data / train}", f"--source=imagenet-val={data / 'val.txt'}"]
    assert main(["build", "imagenet", *settings, *sources, "--out", str(tmp_path / "m")]) == 0
    assert read_manifest(tmp_path / "m").digest == read_manifest(FOLDERS[name]).digest
