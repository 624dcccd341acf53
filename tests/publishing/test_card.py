"""The card: columns, classes and results; and the header that a hub reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import curation
from curation.core.errors import LeaderboardError, PublishError
from curation.evaluation.leaderboard_rows import Evaluator, LeaderboardRow, ManifestName, Metric
from curation.manifest.header import Paper
from curation.manifest.manifest import Manifest
from curation.publishing.card import card_data, links
from tests.publishing.published_world import request_of, tiny, write


def card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def published(folder: Path, manifest: Manifest, **options: Any) -> str:
    curation.publish(manifest, "lab/lists", dry_run=folder, date="2026-01-02", **options)
    return card(folder)


def section(text: str, heading: str) -> str:
    rest = text.partition(f"\n{heading}\n")[2]
    assert rest, heading
    level = heading.partition(" ")[0]
    lines = rest.split("\n")
    ends = [n for n, line in enumerate(lines) if line.startswith("#") and line.partition(" ")[0] <= level]
    return "\n".join(lines[: ends[0]] if ends else lines)


# Columns and classes


def test_columns_are_explained(tmp_path: Path) -> None:
    manifest, sources = tiny()
    write(tmp_path / "out", request_of(manifest, sources=sources))
    text = section(card(tmp_path / "out"), "### Columns")
    assert "| `width` | number | width of the photo in pixels |" in text
    assert "| `roles` | list of texts | the roles that classes" in text
    assert text.count("| list of records |") == 3


# Results


NUMBERS = {"AP": Metric(value=41.5, unit="%", better="higher"), "AP50": Metric(value=None, unit="%", better="higher")}


def row(scored: Manifest, **fields: Any) -> LeaderboardRow:
    header = scored.header
    plain: dict[str, Any] = {
        "schema_version": 2,
        "name": "ours",
        "score": "",
        "protocol": "coco",
        "manifest": ManifestName(name=header.name, version=header.version, digest=scored.digest),
        "part": "closed",
        "variant": "",
        "truth": "sha256:" + "1" * 64,
        "pinned": True,
        "settings": {},
        "evaluator": Evaluator(curation="0.1.0", algorithm=1),
        "operating_point": {},
        "metrics": NUMBERS,
        "predictions": "sha256:" + "2" * 64,
        "reported": {},
    }  # fmt: skip
    return LeaderboardRow(**{**plain, **fields})


def lines(*rows: LeaderboardRow) -> bytes:
    return b"".join(msgspec.json.encode(one) + b"\n" for one in rows)


def test_results_of_exactly_these_lists_stand_in_the_card(tmp_path: Path) -> None:
    manifest = tiny()[0]
    better = {"AP": Metric(value=52.25, unit="%", better="higher")}
    data = lines(
        row(manifest), row(manifest, name="x | y <img src=x>", metrics=better, predictions="sha256:" + "3" * 64)
    )
    (tmp_path / "results.jsonl").write_bytes(data)
    text = published(tmp_path / "out", manifest, results=tmp_path / "results.jsonl")
    found = section(text, "## Results")
    assert "**52.25**" in found
    assert "41.50" in found
    assert "<img" not in found.replace("\\<img", "")
    assert (tmp_path / "out/results.jsonl").read_bytes() == data
    assert "## Results" not in published(tmp_path / "none", manifest)


@pytest.mark.parametrize("kind", ["other", "none", "torn", "empty", "rows", "suffix"])
def test_any_other_result_is_refused(tmp_path: Path, kind: str) -> None:
    manifest = tiny()[0]
    other = ManifestName(name="hand/made", version="1.0.0", digest="sha256:" + "9" * 64)
    content = {
        "other": lines(row(manifest), row(manifest, manifest=other)),
        "none": lines(row(manifest, manifest=None, pinned=False)),
        "torn": lines(row(manifest)) + b'{"schema_version": 1',
        "empty": b"",
        "rows": b'{"a": 1}\n',
        "suffix": lines(row(manifest)),
    }[kind]
    path = tmp_path / ("results.json" if kind == "suffix" else "results.jsonl")
    path.write_bytes(content)
    with pytest.raises((PublishError, LeaderboardError)) as refused:
        published(tmp_path / "out", manifest, results=path)
    if kind == "other":
        assert "line 2 (ours)" in str(refused.value)
        assert manifest.digest in str(refused.value)
    assert not (tmp_path / "out").exists()


# Header, papers


def test_the_header_is_one_that_a_hub_reads() -> None:
    from huggingface_hub import DatasetCardData

    manifest, sources = tiny()
    members = request_of(manifest, sources=sources).members
    data = card_data("lab/lists", members, {"hand-made": {"closed": "data/hand-made/closed.parquet"}})
    assert DatasetCardData(**data).to_dict() == data
    assert (data["language"], data["source_datasets"]) == (["en"], ["voc2007", "coco"])
    assert data["annotations_creators"] == ["expert-generated", "crowdsourced"]


def test_papers_lead_to_arxiv_and_doi_and_nowhere_else() -> None:
    def found(bibtex: str) -> list[str]:
        return list(links(Paper(title="t", authors="a", year=2020, venue="v", bibtex=bibtex)).values())

    assert found("@a{k, journal={arXiv 2207.09775}, doi={10.1109/x.2020.1}}") == [
        "https://arxiv.org/abs/2207.09775",
        "https://doi.org/10.1109/x.2020.1",
    ]
    assert found("@a{k, url={javascript:alert(1)}}") == found("@" * 9000 + "{" * 9000) == []
    # Every paper of a manifest that is here but one, whose number nobody stated, can be found.
    papers = {one.paper for name in ("owod/reowod", "osod3/cub-1", "imagenet/p1", "ssb/scars") for one in [curation.load(name).header]}  # noqa: E501  # fmt: skip
    assert all(links(paper) for paper in papers)
