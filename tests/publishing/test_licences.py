"""What may be passed on: the table of terms, and the gate."""

from __future__ import annotations

import pytest

from curation.core.errors import PublishError
from curation.manifest.header import SourceEntry
from curation.publishing.licences import STATED, TERMS, require_labels, terms_of
from curation.sources.datasets import facts_of


def entry(dataset: str, namespace: str = "") -> SourceEntry:
    return SourceEntry(
        name="given",
        dataset=dataset,
        part="",
        namespace=namespace or dataset,
        licence="",
        media_redistributable=True,
        files=(),
    )


@pytest.mark.parametrize("dataset", ["mtsd", "bdd100k", "ore_lists"])
def test_annotations_that_may_not_be_passed_on_are_refused(dataset: str) -> None:
    one = entry(dataset)
    with pytest.raises(PublishError, match="no boxes and no labels") as refused:
        require_labels(one, terms_of(one))
    assert terms_of(one).annotations in (refused.value.found or "")
    assert "leave out --source given" in (refused.value.hint or "")


@pytest.mark.parametrize("dataset", ["coco", "openimages", "voc2007", "imagenet", "cub200", "objects365", "shapes"])
def test_other_annotations_pass(dataset: str) -> None:
    one = entry(dataset)
    require_labels(one, terms_of(one))


def test_a_dataset_cannot_be_renamed_past_the_gate() -> None:
    assert terms_of(entry("shapes", namespace="coco")) == TERMS["coco"]
    with pytest.raises(PublishError):
        require_labels(entry("shapes", namespace="mtsd"), terms_of(entry("shapes", namespace="mtsd")))


def test_data_of_ones_own_needs_a_stated_licence() -> None:
    for licence, free in STATED.items():
        if free:
            require_labels(entry("shapes"), terms_of(entry("shapes"), {"given": licence}))
        else:
            with pytest.raises(PublishError):
                require_labels(entry("shapes"), terms_of(entry("shapes"), {"given": licence}))
    with pytest.raises(PublishError, match="not one that this program knows"):
        terms_of(entry("shapes"), {"given": "WTFPL\x1b[2J"})


def test_licences_that_bind_the_next_one_to_noncommercial_use_or_no_changes_are_not_free() -> None:
    assert not any(free for name, free in STATED.items() if "-NC" in name or "-ND" in name)


def test_the_table_agrees_with_what_manifests_say_of_their_sources() -> None:
    for family, terms in TERMS.items():
        assert not facts_of(family).media_redistributable
        assert terms.url.startswith("http")
        stated = facts_of(family).licence
        for spdx, words in (("CC-BY-4.0", "CC BY 4.0"), ("CC-BY-NC-SA-4.0", "CC BY-NC-SA 4.0")):
            assert (terms.annotations == spdx) == (f"annotations {words}" in stated or f"photos {words}" in stated)
        assert (terms.labels == "no") == (family in ("mtsd", "bdd100k") or family.endswith("_lists"))


def test_a_licence_that_asks_for_attribution_comes_with_whom_to_name() -> None:
    for terms in TERMS.values():
        assert bool(terms.creator) == (terms.labels == "yes" and terms.annotations.startswith("CC-BY"))
