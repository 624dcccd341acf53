"""How similar sets of images are to the ID set: each image's nearest neighbour in a sample of it, and histograms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from curation.core.errors import SimilarityError, UsageError
from curation.core.figures import SERIES, bins_of, label_outer, plain, save_figure, set_title, small_multiples
from curation.signals.similarity.embeddings import Embeddings, Vectors, require_same_encoder
from curation.signals.similarity.neighbors import nearest
from curation.sources.source import Int64s

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SampleRule = Literal["hashrank", "paper", "all"]
SAMPLE_RULES: dict[str, str] = {
    "hashrank": "the 2,000 images of lowest sha256(salt + id): stable when the set grows",
    "paper": "2,000 images by NumPy's RandomState(42), without replacement, after a choice of 4,000 training images "
    "(FindMeIfYouCan's code)",
    "all": "every image",
}
SAMPLE, PAPER_TRAIN_SAMPLE, PAPER_SEED = 2000, 4000, 42
MAD_TO_SIGMA = 1.4826
"""Of a normal distribution: standard deviation over median absolute deviation."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS, RANGE = 200, (0.1, 0.81)
"""Of Fig. 3 of FindMeIfYouCan; the range grows where similarities lie outside."""


@dataclass(frozen=True)
class SetSimilarity:
    """The images of a set, each with its nearest ID image.

    Attributes
    ----------
    ids, nearest : tuple of str, length n
    similarity : ndarray of float32, shape (n,)
        Cosine of each image and its nearest ID image: the largest over the sample, with no averaging.
    margin : ndarray of float32, shape (n,)
        How much more similar the nearest is than the second nearest; NaN where the sample has one image.
    """

    ids: tuple[str, ...]
    nearest: tuple[str, ...]
    similarity: Vectors
    margin: Vectors

    def statistics(self) -> dict[str, Any]:
        """Return n, mean, standard deviation (population), standard error and quantiles; None without images."""
        n = len(self.ids)
        values = self.similarity.astype(np.float64)
        std = float(values.std()) if n else None
        return {
            "n": n,
            "mean": float(values.mean()) if n else None,
            "std": std,
            "standard_error": None if std is None else std / float(np.sqrt(n)),
            "quantiles": {str(q): float(np.quantile(values, q)) if n else None for q in QUANTILES},
        }


@dataclass(frozen=True, slots=True)
class Reference:
    """How similar ID images are to one another, each without itself.

    Attributes
    ----------
    n : int
    median, sigma : float or None
        Median m0 of the nearest-neighbour similarities, and 1.4826 times their median absolute deviation; None with
        fewer than three images.
    """

    n: int
    median: float | None
    sigma: float | None


_MOST_TRAIN = 50_000_000
"""The legacy generator permutes them all in memory."""


def sample_rows(
    embeddings: Embeddings, rule: SampleRule = "hashrank", *, n_train: int | None = None, salt: str = "id-sample/"
) -> Int64s:
    """Return the rows of the ID sample, ascending.

    Parameters
    ----------
    rule : {"hashrank", "paper", "all"}
        See `SAMPLE_RULES`.
    n_train : int
        Training images of the ID set: under ``paper`` the generator has drawn 4,000 of them before.

    Raises
    ------
    UsageError
        ``paper`` lacks the number of training images.
    """
    n = len(embeddings.ids)
    if rule == "all" or (rule == "hashrank" and n <= SAMPLE):
        return np.arange(n)
    if rule == "hashrank":
        ranked = sorted(range(n), key=lambda row: hashlib.sha256((salt + embeddings.ids[row]).encode()).digest())
        return np.sort(np.array(ranked[:SAMPLE], np.int64))
    if n_train is None or not 1 <= n_train <= _MOST_TRAIN:
        raise UsageError(
            "The paper's sample depends on the number of training images",
            expected=f"the training images of the ID set, 1 to {_MOST_TRAIN:,}",
            found=str(n_train)[:40],
        )
    # Legacy generator on purpose: its sequences never change.
    generator = np.random.RandomState(PAPER_SEED)
    generator.choice(n_train, min(PAPER_TRAIN_SAMPLE, n_train), replace=False)
    # The authors' helper would keep two images of a set above 2,000 (it takes the length of a dict); theirs never is.
    return np.sort(generator.choice(n, min(SAMPLE, n), replace=False))


def set_similarity(embeddings: Embeddings, reference: Embeddings) -> SetSimilarity:
    """Return the nearest ID image of each image of a set (FindMeIfYouCan, section 3.1 and Fig. 3).

    Parameters
    ----------
    reference : Embeddings
        Of the sample of the ID set (see `sample_rows`), by the same encoder.

    Raises
    ------
    SimilarityError
        The encoders differ, or the sample is empty.
    """
    require_same_encoder(embeddings, reference)
    n = len(reference.ids)
    if not n:
        raise SimilarityError("No ID image to compare with", expected="at least one embedding")
    rows, scores = nearest(embeddings.normalised(), reference.normalised(), min(2, n))
    margin = scores[:, 0] - scores[:, 1] if n > 1 else np.full(len(scores), np.nan, np.float32)
    nearest_ids = tuple(reference.ids[row] for row in rows[:, 0].tolist())
    return SetSimilarity(embeddings.ids, nearest_ids, scores[:, 0].copy(), margin.astype(np.float32))


def leave_one_out(embeddings: Embeddings) -> Vectors:
    """Return the cosine of each embedding and the nearest other one, shape (n,)."""
    n = len(embeddings.ids)
    if n < 2:
        return np.empty(0, np.float32)
    unit = embeddings.normalised()
    rows, scores = nearest(unit, unit, 2)
    # An exact copy with a smaller row may rank before the image itself.
    itself = rows[:, 0] == np.arange(n)
    similar: Vectors = np.where(itself, scores[:, 1], scores[:, 0])
    return similar


def reference_statistics(embeddings: Embeddings) -> Reference:
    """Return median and robust sigma of the leave-one-out similarities of an ID sample."""
    similar = leave_one_out(embeddings)
    if len(similar) < 3:
        return Reference(len(similar), None, None)
    median = float(np.median(similar))
    return Reference(len(similar), median, MAD_TO_SIGMA * float(np.median(np.abs(similar - median))))


def similarity_histograms(panels: Mapping[str, Mapping[str, Vectors]], stem: Path, *, bins: int = BINS) -> list[Path]:
    """Draw the similarities of several sets to the ID set, one panel a source (Fig. 3 of FindMeIfYouCan).

    Parameters
    ----------
    panels : mapping of str to mapping of str to ndarray of float32
        By source, then by set: the similarity of each image to its nearest ID image.
    stem : Path
        Path without suffix.
    bins : int
        At most; a small set has fewer.

    Returns
    -------
    list of Path
        PNG, SVG, and the CSV of the densities drawn (source, set, bin edges, density).
    """
    values = [scores for sets in panels.values() for scores in sets.values() if len(scores)]
    low = min([RANGE[0], *(float(value.min()) for value in values)])
    high = max([RANGE[1], *(float(value.max()) for value in values)])
    bins = bins_of(min((len(value) for value in values), default=0), bins)
    edges = np.linspace(low, high, bins + 1)
    densities = {
        (source, name): np.histogram(scores, edges, density=True)[0] if len(scores) else np.zeros(bins)
        for source, sets in panels.items()
        for name, scores in sets.items()
    }

    # A set of several sources has one colour.
    names = list(dict.fromkeys(name for _, name in densities))

    def draw() -> Figure:
        figure, axes = small_multiples(len(panels), most=2, height=2.3, sharex=True, sharey=True)
        for axis, (source, sets) in zip(axes, panels.items(), strict=True):
            for name, scores in sets.items():
                colour = SERIES[names.index(name) % len(SERIES)]
                label = f"{plain(name)} (n = {len(scores):,})"
                axis.stairs(densities[source, name], edges, color=colour, fill=True, alpha=0.12)
                axis.stairs(densities[source, name], edges, color=colour, linewidth=1.4, label=label)
                if len(scores):
                    axis.axvline(float(np.mean(scores)), color=colour, linewidth=1, linestyle="--")
            axis.set_title(plain(source))
            axis.legend(loc="upper left")
        # Sets of several sources have keys of their own: room for them above the steps.
        axes[0].set_ylim(0, axes[0].get_ylim()[1] * (1.1 + 0.1 * max(len(sets) for sets in panels.values())))
        label_outer(axes, "cosine similarity to the nearest ID image", "density")
        set_title(figure, "Similarity of the sets to the ID images", "dashed: means")
        return figure

    rows = [
        (source, name, float(edges[number]), float(edges[number + 1]), float(density))
        for (source, name), found in densities.items()
        for number, density in enumerate(found)
    ]
    return save_figure(draw, stem, ("source", "set", "from", "to", "density"), rows)
