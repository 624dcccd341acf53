from pathlib import Path

import pytest

from curation.errors import ProposalError
from curation.proposals.id_classes import read_synset_map, synsets_of


def test_a_leopard_is_the_animal_not_the_fur() -> None:
    # leopard.n.01 of WordNet 3.0 is the pelt, n14763561; the cat is n02128385.
    assert synsets_of(["Leopard"], dataset="openimages") == {"Leopard": "n02128385"}


def test_names_are_found_in_the_maps_of_other_data_sets() -> None:
    assert synsets_of(["LAPTOP", "aeroplane", "no such thing"]) == {"LAPTOP": "n03642806", "aeroplane": "n02691156"}


def test_the_users_own_synsets_go_before_and_may_say_none() -> None:
    assert synsets_of(["dog", "cat"], given={"Dog": "n02083346", "cat": ""}) == {"dog": "n02083346"}


@pytest.mark.parametrize(
    ("name", "text"), [("m.csv", "name,synset\ndog,n02084071\ncat,\n"), ("m.tsv", "# mine\ndog\tn02084071\ncat\t\n")]
)
def test_a_map_is_read_with_and_without_a_head(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_synset_map(tmp_path / name) == {"dog": "n02084071", "cat": ""}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("dog\n", "row 1"),
        ("dog,n02084071\nDOG,n02084071\n", "row 2"),
        ("dog,n00000001\n", "Not a noun synset"),
        ("dog,dog.n.01\n", "Not a noun synset"),
        (",n02084071\n", "row 1"),
    ],
)
def test_a_malformed_map_is_refused_with_the_row(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ProposalError) as caught:
        read_synset_map(tmp_path / "m.csv")
    assert said in str(caught.value)
