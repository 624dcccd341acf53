"""NLTK as a second opinion on the nouns."""

import shutil
from pathlib import Path

import pytest

from curation.errors import HierarchyError, MissingFileError
from curation.hierarchy.nltk_wordnet import nltk_reader, nltk_wordnet
from curation.hierarchy.wordnet import wordnet


@pytest.mark.slow
def test_nltk_reads_the_same_graph(wordnet_folder: Path) -> None:
    ours, theirs = wordnet(instances=True), nltk_wordnet(wordnet_folder, instances=True)
    assert set(ours) == set(theirs)
    assert set(ours.edges) == set(theirs.edges)
    assert dict(ours.nodes(data="lemmas")) == dict(theirs.nodes(data="lemmas"))
    assert dict(ours.nodes(data="name")) == dict(theirs.nodes(data="name"))


def test_it_needs_neither_lexnames_nor_strict_modes(wordnet_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for path in wordnet_folder.iterdir():
        if path.name.startswith(("data.", "index.")) and path.suffix != ".sense":
            shutil.copyfile(path, folder / path.name)
            (folder / path.name).chmod(0o664)
    with nltk_reader(tmp_path) as reader:
        assert reader.synset_from_pos_and_offset("n", 2084071).name() == "dog.n.01"
        assert reader.synset("dog.n.01").lexname() == "noun.animal"


def test_what_nltk_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError), nltk_reader(tmp_path):
        pass
    (tmp_path / "data.noun").write_text("garbage\n")
    with pytest.raises(HierarchyError, match="NLTK cannot read"), nltk_reader(tmp_path):
        pass
