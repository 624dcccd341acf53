"""What may be passed on: the table of terms, and the gate."""

from __future__ import annotations

import pytest

from curation.core.errors import PublishError
from curation.core.ids import ImageId
from curation.extensions.audit.target import known_exhaustive
from curation.manifest.header import FileEntry, SourceEntry
from curation.publishing.member import STATED, TERMS, require_labels, terms_of
from curation.sources.datasets import family, is_known, licence_facts, named_by_file, namespace_of, users_name

REBUILT = "sha256:e33b6e99c79325e460f1141ac6c8eacf63efe2a8f79df22268c2710a54b41ab4"
"""Digest of instances_val2017_rebuilt.json, from which packaged manifests were made."""


def entry(dataset: str, namespace: str = "", digest: str = "") -> SourceEntry:
    return SourceEntry(
        name="given",
        dataset=dataset,
        part="",
        namespace=namespace or dataset,
        licence="",
        media_redistributable=True,
        files=(FileEntry(name="f.json", sha256=digest, size=1, rows=1),) if digest else (),
    )


@pytest.mark.parametrize("dataset", ["mtsd", "bdd100k", "ore_lists"])
def test_annotations_that_may_not_be_passed_on_are_refused(dataset: str) -> None:
    one = entry(dataset)
    with pytest.raises(PublishError, match="boxes and labels cannot be published") as refused:
        require_labels(one, terms_of(one))
    assert terms_of(one).annotations in (refused.value.found or "")
    assert "leave out --source given" in (refused.value.hint or "")


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
    with pytest.raises(PublishError, match="Unknown licence"):
        terms_of(entry("shapes"), {"given": "WTFPL\x1b[2J"})


def test_the_table_agrees_with_what_manifests_say_of_their_sources() -> None:
    for name, terms in TERMS.items():
        assert not licence_facts(name).media_redistributable
        assert terms.url.startswith("http")
        stated = licence_facts(name).licence
        for spdx, words in (("CC-BY-4.0", "CC BY 4.0"), ("CC-BY-NC-SA-4.0", "CC BY-NC-SA 4.0")):
            assert (terms.annotations == spdx) == (f"annotations {words}" in stated or f"photos {words}" in stated)
        assert (terms.labels == "no") == (name in ("mtsd", "bdd100k") or name.endswith("_lists"))


def test_a_licence_that_asks_for_attribution_comes_with_whom_to_name() -> None:
    for terms in TERMS.values():
        assert bool(terms.creator) == (terms.labels == "yes" and terms.annotations.startswith("CC-BY"))


KNOWN = (
    "coco", "coco2014", "voc2007", "imagenet", "openimages", "cub200", "mtsd", "bdd100k", "dtd", "ninco", "nuimages",
    "rwd_aquatic", "textures",
)  # fmt: skip


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("ending", ["a", "_mine", "a_2", "logy"])
def test_a_name_that_begins_like_that_of_a_known_dataset_is_another(known: str, ending: str) -> None:
    name = f"{known}{ending}"
    assert family(name) == name
    assert namespace_of(name) == name == users_name(name)
    assert (is_known(name), named_by_file(name), known_exhaustive(name)) == (False, False, ())
    assert licence_facts(name).licence == "not stated"
    assert terms_of(entry(name)).annotations == "not stated"
    assert terms_of(entry(name), {"given": "CC0-1.0"}).annotations == "CC0-1.0"


@pytest.mark.parametrize("name", KNOWN)
def test_a_users_dataset_does_not_take_a_known_name(name: str) -> None:
    assert users_name(name) == f"my_{name}"
    assert str(ImageId(users_name(name), "1")) == f"my_{name}:1"


def test_the_owner_states_the_licence_of_data_that_fill_a_known_slot() -> None:
    for dataset in ("coco", "voc2007", "imagenet", "openimages"):
        assert terms_of(entry(dataset), {"given": "MIT"}).annotations == "MIT"
    # The licence of the table itself contradicts nothing.
    assert terms_of(entry("coco"), {"given": "CC-BY-4.0"}) == TERMS["coco"]


def test_a_dataset_that_is_proved_by_digest_keeps_its_licence_under_any_name() -> None:
    for name in ("coco", "shapes"):
        with pytest.raises(PublishError, match="proved by digest") as refused:
            terms_of(entry(name, digest=REBUILT), {"given": "MIT"})
        assert refused.value.hint == "drop --licence given=MIT"
        # What the hint says works.
        assert terms_of(entry(name, digest=REBUILT)) == TERMS["coco"]


def test_labels_that_may_not_be_passed_on_are_not_freed_by_a_statement() -> None:
    with pytest.raises(PublishError, match="is fixed") as refused:
        terms_of(entry("mtsd"), {"given": "MIT"})
    assert "need another name" in (refused.value.hint or "")
