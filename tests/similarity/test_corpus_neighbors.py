"""Neighbours in a corpus that goes by in parts are those of one search, on either engine."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.engines.running import EngineName
from curation.errors import SimilarityError, UsageError
from curation.similarity import corpus_neighbors
from curation.similarity.corpus_neighbors import nearest_in_corpus
from curation.similarity.embeddings import EmbeddingStore, Row, header_of, open_embeddings
from curation.similarity.encoder import ColourEncoder
from curation.similarity.from_files import Pairs, embed, neighbors
from curation.similarity.neighbors import nearest_others
from tests.rounding import cosine_error
from tests.similarity.clip_world import write_photos

pytest.importorskip("PIL.Image")
ERROR = 2 * cosine_error(6)


def store(folder: Path, count: int, seed: int, first: int = 0) -> Path:
    vectors = np.random.default_rng(seed).integers(-3, 4, (count, 6)).astype(np.float32)
    rows = [Row(f"toy:{number}", f"sha256:{seed}-{number}") for number in range(first, first + count)]
    made = EmbeddingStore(folder, header_of(ColourEncoder().identity, 6, kind="images", batch=32))
    made.add(rows, vectors)
    made.finish(rows)
    return folder


@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_a_store_in_parts_gives_what_one_search_gives(
    engine: EngineName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if engine == "ray":
        request.getfixturevalue("ray_session")
    monkeypatch.setattr(corpus_neighbors, "PART", 60)
    references = store(tmp_path / "r", 130, 1)
    queries = open_embeddings(store(tmp_path / "q", 20, 2))
    for asked in (queries, open_embeddings(references).take(range(5, 120, 9))):
        places, scores, itself = nearest_others(asked, open_embeddings(references), 7)
        found, own = nearest_in_corpus(asked, references, 7, engine=engine, out=tmp_path / f"{len(asked)}")
        assert own == itself
        # Products of parts of other sizes may be rounded otherwise, so equal ones need not be in one order.
        wide = [dict(row) for row in nearest_in_corpus(asked, references, 20, workers=1)[0]]
        np.testing.assert_allclose([[score for _, score in row] for row in found], scores, rtol=0, atol=ERROR)
        for row, all_near, values in zip(found, wide, scores, strict=True):
            assert all(all_near.get(name, values[-1]) >= values[-1] - ERROR for name, _ in row)
        assert len(places) == len(found)


def test_neighbours_in_an_embedded_corpus(tmp_path: Path) -> None:
    paths = write_photos(tmp_path / "p", 12)
    (tmp_path / "q").mkdir()
    shutil.copy(paths[3], tmp_path / "q" / "x.png")
    paths[7].write_bytes(b"no photo")
    embed(images=tmp_path / "q", out=tmp_path / "queries")
    embed(corpus=tmp_path / "p", out=tmp_path / "corpus")
    made = neighbors(queries=tmp_path / "queries", references=tmp_path / "corpus", k=2)
    assert isinstance(made, Pairs)
    assert made.rows[0][:3] == ("photos:x", 1, "003.png")
    assert made.facts["references"] == 12
    with pytest.raises(SimilarityError, match="Too few references"):
        neighbors(queries=tmp_path / "queries", references=tmp_path / "corpus", k=12)
    with pytest.raises(SimilarityError, match="not embedded by the encoder"):
        nearest_in_corpus(changed(open_embeddings(tmp_path / "queries")), tmp_path / "corpus", 1)
    for wrong in ({"workers": 2}, {"parts": tmp_path / "x"}, {"engine": "ray"}):
        with pytest.raises(UsageError, match="do not apply to --set-similarity"):
            neighbors(queries=tmp_path / "queries", references=tmp_path / "queries", set_similarity=True, **wrong)  # type: ignore[arg-type]


def changed(embeddings: Any) -> Any:
    import dataclasses

    other = dataclasses.replace(embeddings.encoder, weights="others")
    return dataclasses.replace(embeddings, encoder=other)
