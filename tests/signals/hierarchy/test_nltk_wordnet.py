"""WordNets of NLTK's data: a small one drawn here, and WordNet 3.0 moved to other offsets."""

import sys
import zipfile
from pathlib import Path

import pytest

from curation.cli import main
from curation.core.errors import HierarchyError, MissingExtraError, MissingFileError
from curation.signals.hierarchy import open_wordnet
from curation.signals.hierarchy.hierarchy import parents
from curation.signals.hierarchy.wordnet import embedded_sense_keys, wnid, wordnet
from tests.signals.hierarchy.drawn_wordnet import CANINE, DOG, SMALL, database, written
from tests.signals.hierarchy.generate_wordnet import read_noun_lines
from tests.signals.hierarchy.nltk_oracle import nltk_graph


def test_synsets_bear_the_ids_of_wordnet_30(nltk_corpora: Path) -> None:
    written(nltk_corpora / "tiny", database(SMALL))
    found = open_wordnet("nltk:tiny")
    graph = found.nouns()
    names = dict(graph.nodes(data="name"))
    doodle = next(node for node, name in names.items() if name == "labradoodle.n.01")
    assert {"n00001740", "n00015388", "n01317541", "n02083346", "n02084071"} < set(graph)
    assert doodle.startswith("n1")
    assert len(doodle) == 10
    # The order of the parents is that of the file.
    assert parents(graph, "n02084071") == ("n01317541", "n02083346")
    assert parents(graph, doodle) == ("n02084071",)
    assert found.words_of("n02084071") == ("dog", "domestic_dog", "doggo")
    assert found.name == "WordNet 3.1 (NLTK's tiny)"
    assert found.difference == "8 nouns: it lacks 82108 of the 82115 of WordNet 3.0, and 1 are its own"
    assert doodle in found
    assert "n02121620" not in found
    assert set(found.nouns(above=[doodle])) == {
        doodle, "n02084071", "n01317541", "n02083346", "n00015388", "n00001740"
    }  # fmt: skip
    assert found.noun_depth == 4
    assert open_wordnet("nltk:tiny") is found


def test_of_two_synsets_that_became_one_and_of_one_that_became_two(nltk_corpora: Path) -> None:
    # dog n02084071 went to the second, which has two of its keys; canine and entity are one.
    rows = (
        (3, (("entity", 0), ("canine", 1), ("canid", 0)), ()),
        (5, (("dog", 0), ("domestic_dog", 0)), (("@", 0),)),
        (5, (("Canis_familiaris", 0),), (("@", 0),)),
    )
    rows = tuple((lexicon, lemmas if lexicon == 5 else (("entity", 0),), over) for lexicon, lemmas, over in rows)
    written(nltk_corpora / "split", database(rows))
    found = open_wordnet("nltk:split")
    assert found.words_of("n02084071") == ("dog", "domestic_dog")
    assert found.difference.startswith("3 nouns: it lacks 82113")
    merged = ((3, (("entity", 0),), ()), (5, (("canine", 1), ("dog", 0), ("domestic_dog", 0)), (("@", 0),)))
    written(nltk_corpora / "merged", database(merged))
    assert "n02083346" not in open_wordnet("nltk:merged")
    assert "n02084071" in open_wordnet("nltk:merged")


def test_a_zipped_corpus_is_read(nltk_corpora: Path) -> None:
    data, index = database(SMALL)
    with zipfile.ZipFile(nltk_corpora / "zipped.zip", "w") as packed:
        packed.writestr("zipped/", "")
        packed.writestr("zipped/data.noun", data)
        packed.writestr("zipped/index.noun", index)
    assert "n02084071" in open_wordnet("nltk:zipped")


def test_what_is_not_there(nltk_corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for which, corpus in (("nltk", "wordnet"), ("nltk:wordnet31", "wordnet31")):
        with pytest.raises(MissingFileError, match="no such corpus") as raised:
            open_wordnet(which)
        assert raised.value.hint == f"python -m nltk.downloader {corpus}"
    with pytest.raises(MissingFileError, match="no such corpus"):
        open_wordnet("nltk:../../etc")
    written(nltk_corpora / "words", ("garbage\n", ""))
    with pytest.raises(HierarchyError, match="cannot be read"):
        open_wordnet("nltk:words")
    written(nltk_corpora / "empty", ("", ""))
    with pytest.raises(HierarchyError, match="NLTK cannot read"):
        open_wordnet("nltk:empty")
    (nltk_corpora / "brown").mkdir()
    with pytest.raises(HierarchyError, match="NLTK cannot read"):
        open_wordnet("nltk:brown")
    written(nltk_corpora / "tiny", database(SMALL))
    with pytest.raises(MissingFileError, match="no such corpus"):
        open_wordnet("nltk:tiny:fra")
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(MissingExtraError, match="NLTK is not installed") as missing:
        open_wordnet("nltk:other")
    assert "pip install" in (missing.value.hint or "")


def test_commands_say_which_wordnet_answers(nltk_corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(nltk_corpora / "tiny", database(SMALL))
    given = ["--set", "wordnet=nltk:tiny"]
    assert main(["hierarchy", "show", "animal", "--leaves", "all", "--tree", "first", *given]) == 0
    shown = capsys.readouterr()
    assert "labradoodle" in shown.out
    assert shown.err == (
        "warning: WordNet 3.1 (NLTK's tiny): 8 nouns: it lacks 82108 of the 82115 of WordNet 3.0, and 1 are its own\n"
    )
    assert main(["hierarchy", "similarity", "dog", "canine", *given, "--json"]) == 0
    assert '"origin": "WordNet 3.1 (NLTK\'s tiny) nouns"' in capsys.readouterr().out
    assert main(["hierarchy", "find", "doggo", *given]) == 0
    written(nltk_corpora / "wild", database([*SMALL[:DOG], (5, (("dog", 0),), (("@", CANINE),))]))
    assert main(["hierarchy", "show", "animal", "--leaves", "all", "--set", "wordnet=nltk:wild"]) == 0
    assert "the published tree is of WordNet 3.0" in capsys.readouterr().err
    # ImageNet's classes are not among these nouns, and that is no answer.
    assert main(["hierarchy", "show", "animal", *given]) == 2
    assert "Not a noun synset of WordNet 3.1" in capsys.readouterr().err


@pytest.mark.slow
def test_wordnet_30_at_other_offsets_is_the_built_in_one(nltk_corpora: Path, wordnet_folder: Path) -> None:
    lines = read_noun_lines(wordnet_folder)
    place = {line.offset: number for number, line in enumerate(lines)}
    rows = [
        (
            line.lexicon,
            tuple(zip(line.lemmas, line.lexicon_ids, strict=True)),
            tuple(("@i" if instance else "@", place[offset]) for offset, instance in line.parents),
        )
        for line in lines
    ]
    written(nltk_corpora / "moved", database(rows))
    moved, built_in = open_wordnet("nltk:moved"), open_wordnet()
    assert moved.difference == "82115 nouns: it lacks 0 of the 82115 of WordNet 3.0, and 0 are its own"
    for column in ("offsets", "starts", "parents", "instances"):
        assert (getattr(moved.table, column) == getattr(built_in.table, column)).all(), column
    assert list(moved.lemmas) == list(built_in.lemmas)
    assert built_in.noun_depth == 19


@pytest.mark.slow
def test_nltk_reads_the_same_graph(wordnet_folder: Path) -> None:
    ours, theirs = wordnet(instances=True), nltk_graph(wordnet_folder, instances=True)
    assert set(ours) == set(theirs)
    assert set(ours.edges) == set(theirs.edges)
    assert dict(ours.nodes(data="lemmas")) == dict(theirs.nodes(data="lemmas"))
    assert dict(ours.nodes(data="name")) == dict(theirs.nodes(data="name"))
    keys = {key: wnid(offset) for key, offset in embedded_sense_keys().items()}
    assert keys == {key: node for node, its in theirs.nodes(data="keys") for key in its}
