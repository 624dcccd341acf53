"""Known, negative and unknown classes: the published lists, the rival readings, and rules of one's own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import networkx as nx
import pytest

from curation.benchmarks.imagenet import RULES, ClassRule, declaration_of, partition, read_protocol
from curation.benchmarks.rules.hierarchy import RolePartition
from curation.cli import main
from curation.core.errors import ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.locate import manifest_folders
from curation.manifest.manifest import read_manifest
from curation.signals.hierarchy.hierarchy import as_tree
from curation.signals.hierarchy.wordnet import imagenet_dag, imagenet_tree
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


def sizes(found: RolePartition) -> tuple[int, int, int]:
    return len(found.known), len(found.negative), len(found.unknown)


@pytest.mark.parametrize("name", RULES)
def test_counts_of_tables_3_to_5(name: str) -> None:
    found = partition(RULES[name], imagenet_tree(), ilsvrc2012_classes())
    assert sizes(found) == COUNTS[name]
    labels = found.labels()
    assert len(labels) == sum(COUNTS[name])
    assert [one for one, label in labels.items() if label >= 0] == sorted(found.known)
    assert sorted(label for label in labels.values() if label >= 0) == list(range(len(found.known)))
    assert not {"n02091032", "n02091134"} & set(labels)


@real_files("held")
@pytest.mark.parametrize("name", RULES)
def check_the_published_lists(shared: Path, name: str) -> None:
    golden = json.loads((shared / "golden/imagenet/class_lists.json").read_text())[name.upper()]
    found = partition(RULES[name], imagenet_tree(), ilsvrc2012_classes())
    for role in ("known", "negative", "unknown"):
        assert list(getattr(found, role)) == sorted(golden[role])


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
    found = {name: sizes(partition(rule, graph, ilsvrc2012_classes())) for name, rule in RULES.items()}
    assert found == expected


def test_a_missing_class_would_shift_all_later_ones() -> None:
    whole = partition(RULES["p2"], imagenet_tree(), ilsvrc2012_classes())
    fewer = partition(RULES["p2"], imagenet_tree(), [one for one in ilsvrc2012_classes() if one != whole.known[0]])
    assert whole.negative[0] not in whole.known
    assert len(fewer.known) == 30
    assert fewer.known[-1] == whole.negative[0]


@pytest.fixture
def drawn() -> Any:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for place in range(8):
        graph.add_edge(f"a{place}", "animal")
    graph.add_edge("t0", "thing")
    graph.add_edge("a7", "thing")
    return graph


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
    leaves = [f"a{place}" for place in range(8)]
    found = partition(ClassRule(cut=cut, known=("animal",)), drawn, leaves)
    assert ["".join(one[1] for one in part) for part in (found.known, found.negative, found.unknown)] == [
        known,
        negative,
        unknown,
    ]


def test_a_class_in_two_roles_is_refused(drawn: Any) -> None:
    leaves = [*(f"a{place}" for place in range(8)), "t0"]
    with pytest.raises(ProtocolError, match="known and unknown at once"):
        partition(ClassRule(cut="whole", known=("animal",), unknown=("thing",)), drawn, leaves)


def test_no_known_class_is_refused(drawn: Any) -> None:
    with pytest.raises(ProtocolError, match="below the known superclasses"):
        partition(ClassRule(cut="whole", known=("animal",), unknown=("thing",)), drawn, ["t0"])


OWN = 'name = "cats"\nknown = ["n02120997"]\nunknown = ["n02131653"]\ncut = "KN"\n'


def test_a_file_is_kept_in_the_manifest_itself(tmp_path: Path) -> None:
    path = tmp_path / "cats.toml"
    path.write_text(OWN)
    text = read_protocol(str(path))
    path.unlink()
    assert read_protocol(text) == text
    assert declaration_of(text).known == ("n02120997",)
    assert json.loads(text)["cut"] == "KN"
    assert msgspec.structs.asdict(declaration_of("p2")) == {"name": "p2", **msgspec.structs.asdict(RULES["p2"])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"cats"', '"P1!"'), "cannot be read"),
        (('"cats"', '"p1"'), "inconsistent"),
        (('"KN"', '"thirds"'), "cannot be read"),
        (('"n02131653"', '"n02120997"'), "inconsistent"),
        (('"n02131653"', '"n02123045"'), "inconsistent"),
        (('["n02120997"]', "[]"), "cannot be read"),
        (('["n02120997"]', "3"), "cannot be read"),
        (("cut =", "cuts ="), "cannot be read"),
    ],
)
def test_malformed_declarations(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "cats.toml"
    path.write_text(OWN.replace(*change))
    with pytest.raises(ProtocolError, match=message):
        read_protocol(str(path))


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
