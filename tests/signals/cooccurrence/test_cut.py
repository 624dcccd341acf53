"""Cuts: golden graphs, brute force, planted groups, policies, and what must not change the outcome."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import CutError
from curation.signals.cooccurrence.cut import CutOptions, normalized_cut
from curation.signals.cooccurrence.graph import ClassGraph, best_labels, normalized_cut_value, partition_of
from tests.real_files import real_files
from tests.signals.cooccurrence.graphs import best_by_force, from_images, graph_of, planted_graph, small_graph

SEARCH = CutOptions(exact=False, components="cut", isolated="drop")


def hand_graph() -> ClassGraph:
    """Two triangles and a pair, joined by single images."""
    images = [["a", "b", "c"]] * 4 + [["d", "e"]] * 5 + [["d", "e", "f"]] * 2 + [["g", "h"]] * 6
    return from_images([*images, ["c", "d"], ["f", "g"]], list("hgfedcba"))


def test_a_graph_cut_by_hand() -> None:
    cut = normalized_cut(hand_graph(), 3)
    assert cut.clusters == (("a", "b", "c"), ("d", "e", "f"), ("g", "h"))
    # Volumes 25, 24, 13: links to other clusters 1, 2, 1.
    assert cut.value == Fraction(1, 25) + Fraction(2, 24) + Fraction(1, 13)
    assert cut.between.tolist() == [[24, 1, 0], [1, 22, 1], [0, 1, 12]]
    assert cut.certificate == "exact"
    assert cut.gap == 0
    assert cut.lower_bound <= float(cut.value)


@real_files("held")
@pytest.mark.parametrize("name", ["hand8", "planted10"])
@pytest.mark.parametrize("exact", [True, False])
def check_golden_graphs(shared: Path, name: str, exact: bool) -> None:
    expected = json.loads((shared / f"golden/osod3/ncut/{name}.json").read_text())
    graph = graph_of(expected["classes"], np.array(expected["weights"], np.int64))
    for k, key in ((expected["k"], "optimal_ncut"), (2, "optimal_ncut_k2")):
        cut = normalized_cut(graph, k, CutOptions(exact=exact))
        assert float(cut.value) == pytest.approx(expected[key], abs=1e-12)
        partitions = expected[key.replace("ncut", "partitions")]
        assert sorted(map(sorted, cut.clusters)) in [sorted(map(sorted, one)) for one in partitions]


@pytest.mark.parametrize("seed", range(6))
def test_exact_is_what_brute_force_finds(seed: int) -> None:
    graph = small_graph(seed, n=7, images=12)
    graph = graph.restricted([name for name in graph.names if name not in graph.isolated()])
    assert normalized_cut_value(graph, best_labels(graph, 3)) == best_by_force(graph, 3)


def test_the_search_reaches_the_optimum_of_small_graphs() -> None:
    for seed in range(40):
        graph = small_graph(seed)
        if len(graph.components()) > 1:
            continue
        searched = normalized_cut(graph, 3, SEARCH)
        exact = normalized_cut(graph, 3, CutOptions(isolated="drop"))
        assert (searched.value, searched.clusters) == (exact.value, exact.clusters), seed
        assert searched.lower_bound <= searched.value + 1e-9


def test_equal_values_go_to_the_first_partition() -> None:
    # A ring of four equal edges: two cuts into neighbours have the same value.
    graph = from_images([["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]], list("abcd"))
    for options in (CutOptions(), SEARCH):
        assert normalized_cut(graph, 2, options).clusters == (("a", "b"), ("c", "d"))


def test_planted_groups_are_found() -> None:
    graph, group = planted_graph((40, 10, 20), 4000, 0.02)
    cut = normalized_cut(graph, 3)
    assert cut.clusters == partition_of(graph.names, group)
    noisy, group = planted_graph((40, 10, 20), 4000, 0.1)
    assert normalized_cut(noisy, 3).value <= normalized_cut_value(noisy, group)


@pytest.mark.parametrize(
    ("sizes", "images", "noise", "k"),
    [((40, 10, 20), 2_000, 0.1, 3), ((40, 10, 20), 2_000, 0.4, 3), ((60,), 1_500, 0, 4)],
)
def test_no_cut_is_above_those_of_spectral_clustering(
    sizes: tuple[int, ...], images: int, noise: float, k: int
) -> None:
    from sklearn.cluster import SpectralClustering

    graph, _ = planted_graph(sizes, images, noise)
    graph = graph.restricted(graph.components()[0])
    ours = normalized_cut(graph, k).value
    for assignment in ("kmeans", "discretize", "cluster_qr"):
        model = SpectralClustering(k, affinity="precomputed", assign_labels=assignment, random_state=0)
        labels = model.fit_predict(graph.weights.astype(float))
        assert len(set(labels)) == k
        assert ours <= normalized_cut_value(graph, labels), assignment


def test_order_changes_nothing() -> None:
    graph, _ = planted_graph((9, 5, 7), 300, 0.2)
    order = np.random.default_rng(1).permutation(len(graph.names))
    shuffled = graph_of([graph.names[place] for place in order], graph.weights[np.ix_(order, order)])
    for options in (CutOptions(), SEARCH):
        one, other = normalized_cut(graph, 3, options), normalized_cut(shuffled, 3, options)
        assert (one.clusters, one.value, one.starts) == (other.clusters, other.value, other.starts)


def test_threads_and_hash_seeds_change_nothing() -> None:
    script = (
        "from tests.signals.cooccurrence.graphs import planted_graph\n"
        "from curation.signals.cooccurrence.cut import normalized_cut\n"
        "cut = normalized_cut(planted_graph((30, 12, 20), 900, 0.3)[0], 3)\n"
        "print(cut.clusters, cut.value, [(one.name, one.refined) for one in cut.starts])\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads, seed in (("1", "0"), ("2", "77"))
    }
    assert len(printed) == 1


def test_isolated_classes() -> None:
    graph = from_images([["a", "b"], ["a", "b"], ["b", "c"], ["c", "d"], ["c", "d"], ["x"]], list("abcdx"))
    alone = normalized_cut(graph, 2)
    assert alone.isolated == ("x",)
    assert alone.clusters == (("a", "b", "x"), ("c", "d"))
    dropped = normalized_cut(graph, 2, CutOptions(isolated="drop"))
    assert dropped.clusters == (("a", "b"), ("c", "d"))
    assert dropped.value == alone.value
    with pytest.raises(CutError, match="co-occur with no other"):
        normalized_cut(graph, 2, CutOptions(isolated="error"))


def test_a_graph_that_falls_apart() -> None:
    images = [["a", "b"], ["b", "c"], ["c", "d"], ["a", "b"], ["c", "d"], ["y", "z"]]
    graph = from_images(images, list("abcdyz"))
    with pytest.raises(CutError, match="y, z"):
        normalized_cut(graph, 2)
    assert normalized_cut(graph, 2, CutOptions(components="cut")).clusters == (("a", "b", "c", "d"), ("y", "z"))
    assert normalized_cut(graph, 2, CutOptions(components="cut")).value == 0
    giant = normalized_cut(graph, 2, CutOptions(components="giant"))
    assert giant.clusters == (("a", "b", "y", "z"), ("c", "d"))
    assert giant.apart == ("y", "z")


@pytest.mark.parametrize("k", [0, 1, 5, 10**6])
def test_clusters_that_do_not_fit(k: int) -> None:
    with pytest.raises(CutError, match="number of clusters"):
        normalized_cut(from_images([["a", "b"], ["b", "c"], ["c", "d"]], list("abcd")), k)


@real_files("coco")
def check_never_above_scikit_learn(shared: Path) -> None:
    from curation.signals.cooccurrence.graph import class_graph, count_cooccurrence
    from curation.sources.opening import open_path

    path = shared / "data/coco/instances_val2017_rebuilt.json"
    counts = count_cooccurrence(open_path(path, dataset="coco", part="val2017"))
    cut = normalized_cut(class_graph(counts), 3, CutOptions(restarts=4, kicks=0))
    own = [start.value for start in cut.starts if start.value is not None]
    assert float(cut.value) <= min(own) + 1e-12
    assert cut.lower_bound < cut.value
    assert sum(map(len, cut.clusters)) == 80
