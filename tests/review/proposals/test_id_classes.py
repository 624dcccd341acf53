"""ID classes, and the synsets of names."""

from pathlib import Path

import pytest

from curation.core.errors import ProposalError
from curation.review.proposals.id_classes import IdClass, checked_classes, read_id_classes, synsets_of


def write(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("classes.txt", "# what it knows\naeroplane = airplane\ndog\n"),
        ("classes.json", '{"known": ["aeroplane", "dog"], "unknown": ["fox"], "aliases": {"aeroplane": ["airplane"]}}'),
        ("pair.toml", 'id_classes = ["aeroplane", "dog"]\n[aliases]\naeroplane = ["airplane"]\n'),
    ],
)
def test_all_forms_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    assert read_id_classes(write(tmp_path, name, text)) == (IdClass("aeroplane", ("airplane",)), IdClass("dog"))


@pytest.mark.parametrize(
    "classes",
    [
        [],
        [IdClass("dog"), IdClass("Dog")],
        [IdClass("dog", ("hound",)), IdClass("hound")],
        [IdClass("dog"), IdClass("cat", ("dog",))],
        [IdClass("")],
        [IdClass("…")],
        [IdClass("d" * 300)],
        [IdClass("dog\x1b[2J")],
    ],
)
def test_classes_that_cannot_be_told_apart_or_shown_are_refused(classes: list[IdClass]) -> None:
    with pytest.raises(ProposalError):
        checked_classes(classes, "here")


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"known": "dog"}', '{"known": [1]}', '{"known": ["dog"], "aliases": {"cat": ["x"]}}']
)
def test_a_malformed_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProposalError) as caught:
        read_id_classes(write(tmp_path, "classes.json", text))
    assert "classes.json" in str(caught.value)


def test_a_leopard_is_the_animal_not_the_fur() -> None:
    # leopard.n.01 of WordNet 3.0 is the pelt, n14763561; the cat is n02128385.
    assert synsets_of(["Leopard"], dataset="openimages") == {"Leopard": "n02128385"}


def test_names_are_found_in_the_maps_of_other_data_sets() -> None:
    assert synsets_of(["LAPTOP", "aeroplane", "no such thing"]) == {"LAPTOP": "n03642806", "aeroplane": "n02691156"}
