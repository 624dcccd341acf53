"""Pairs of photos for a person to judge: what is written, what judgements give, and what a pairs file may hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.cli import main
from curation.core.errors import UsageError
from curation.extensions.audit.run import audit
from curation.extensions.leaks.run import DROPS, leaks
from curation.review.decisions.pairs import DECISIONS, PAIRS, PhotoPair, drop_lists, judged_data, pairs_csv, read_pairs
from tests.extensions.leaks.leak_world import copies_of, jpeg, picture, write_benchmark, write_tar

image = pytest.importorskip("PIL.Image")
draw = pytest.importorskip("PIL.ImageDraw")
pytest.importorskip("imagehash")

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=9)
ROWS = st.builds(
    PhotoPair, left=TEXTS.map(lambda text: f"l{text}"), right=TEXTS.map(lambda text: f"={text}"), left_path=TEXTS,
    right_path=TEXTS, left_in=st.just("train"), right_in=st.just("test"),
    kind=st.sampled_from(["perceptual", "mirrored"]),
    value=st.integers(0, 64), threshold=st.just(64), decision=st.sampled_from(DECISIONS),
)  # fmt: skip


@given(st.lists(ROWS, max_size=8, unique_by=lambda pair: pair.images))
def test_pairs_are_read_as_they_are_written(tmp_path_factory: pytest.TempPathFactory, pairs: list[PhotoPair]) -> None:
    path = tmp_path_factory.mktemp("pairs") / PAIRS
    path.write_text(pairs_csv(pairs), encoding="utf-8")
    assert read_pairs(path) == pairs
    same = [pair for pair in pairs if pair.decision == "same"]
    assert drop_lists(pairs) == (sorted({one.left for one in same}), sorted({one.right for one in same}))
    for kind, counts in judged_data(pairs).items():
        words = [pair.decision for pair in pairs if pair.kind == kind]
        judged = words.count("same") + words.count("different")
        assert counts["precision"] == (words.count("same") / judged if judged else None)


PAIR = PhotoPair("a", "b", "", "", "train", "test", "perceptual", 3, 64)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda text: text.replace("decision", "verdict"), "columns are not those"),
        (lambda text: text.replace(",64,", ",64,yes"), "Unknown decision"),
        (lambda text: text.replace(",3,", ",three,"), "number of bits is invalid"),
        (lambda text: text + text.split("\n")[1] + "\n", "pair occurs twice"),
        (lambda text: text.replace(",64,", ""), "another number of cells"),
        (lambda text: text + "\udcff", "cannot be read"),
        (lambda text: "", "columns are not those"),
    ],
)
def test_a_wrong_pairs_file_is_refused(change: object, what: str, tmp_path: Path) -> None:
    assert callable(change)
    (tmp_path / PAIRS).write_bytes(change(pairs_csv([PAIR])).encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=what):
        read_pairs(tmp_path / PAIRS)


def judge(path: Path, *words: str) -> list[PhotoPair]:
    """Fill in the column of decisions as a person would."""
    pairs = [replace(pair, decision=word) for pair, word in zip(read_pairs(path), words, strict=True)]  # type: ignore[arg-type]
    path.write_text(pairs_csv(pairs), encoding="utf-8")
    return pairs


@pytest.mark.parametrize("in_shards", [False, True])
def test_leaks_are_judged_and_both_sides_get_a_drop_list(
    in_shards: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, photos = write_benchmark(tmp_path, 12)
    members = copies_of(dict(list(photos.items())[:5])) | {"other.jpg": jpeg(picture(1000))}
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    if in_shards:
        write_tar(corpus / "00000.tar", sorted(members.items()))
    else:
        for name, data in members.items():
            (corpus / name).write_bytes(data)
    command = ["similarity", "leaks", str(tmp_path / "manifest"), "--corpus", str(corpus), "--photos"]
    command += [str(tmp_path / "photos"), "--resume", str(tmp_path / "evidence")]
    assert main([*command, "--out", str(tmp_path / "out")]) == 1
    pairs = read_pairs(tmp_path / "out" / PAIRS)
    assert len(pairs) == 5
    for pair in pairs:
        assert Path(pair.left_path).is_file()
        archive, mark, member = pair.right_path.partition("!")
        assert Path(archive).is_file()
        assert (mark, member in members) == (("!", True) if in_shards else ("", False))
    judged = judge(tmp_path / "out" / PAIRS, "same", "same", "different", "unsure", "")
    capsys.readouterr()
    assert main([*command, "--judged", str(tmp_path / "out" / PAIRS), "--out", str(tmp_path / "judged")]) == 1
    assert "judged " in capsys.readouterr().out
    lists = [(tmp_path / "judged" / name).read_text().split("\n")[:-1] for name in DROPS]
    assert lists == [sorted(pair.left for pair in judged[:2]), sorted(pair.right for pair in judged[:2])]
    assert (tmp_path / "judged" / "leaked.txt").read_text().split() == sorted(
        {one.left for one in judged} - {judged[2].left}
    )
    data = json.loads((tmp_path / "judged" / "leaks.json").read_text())
    counts = data["data"]["judged"] if "data" in data else data["judged"]
    assert sum(one["same"] for one in counts.values()) == 2
    assert sum(one["different"] for one in counts.values()) == 1
    found = leaks(tmp_path / "manifest", corpus=corpus, photos=tmp_path / "photos", judged=tmp_path / "judged" / PAIRS)
    assert list(found.pairs) == judged


def shapes(folder: Path) -> None:
    """Two drawn shapes of one size on a plain background, whose hashes are equal; and a photo with its smaller copy."""
    folder.mkdir()
    for name, shape in (("circle", "ellipse"), ("square", "rectangle")):
        drawn = image.new("RGB", (256, 256), (240, 240, 240))
        getattr(draw.Draw(drawn), shape)((88, 88, 112, 112), fill=(200, 30, 30))
        drawn.save(folder / f"{name}.png")
    photo = picture(3, 128, 128)
    photo.save(folder / "photo.png")
    photo.resize((96, 96)).save(folder / "small.png")


def test_shapes_on_a_plain_background_are_no_pair_and_a_judgement_goes_before_pixels(tmp_path: Path) -> None:
    shapes(tmp_path / "photos")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "train.txt").write_text("circle.png\nphoto.png\n")
    (tmp_path / "lists" / "test.txt").write_text("square.png\nsmall.png\n")
    report = audit(tmp_path / "lists", photos={"mine": tmp_path / "photos"})
    [finding] = [one for result in report.results if result.rule.name == "DS3" for one in result.outcome.findings]
    assert (finding.verdict, finding.count) == ("warn", 1)
    assert finding.examples[0].startswith("photo.png and small.png (pHash differs in ")
    report.save(tmp_path / "out")
    [pair] = read_pairs(tmp_path / "out" / PAIRS)
    assert (pair.left, pair.right, pair.left_in, pair.right_in) == ("photo.png", "small.png", "train", "test")
    assert Path(pair.left_path).is_file()
    assert Path(pair.right_path).is_file()
    options = {"photos": {"mine": tmp_path / "photos"}, "judged": tmp_path / "out" / PAIRS}
    judge(tmp_path / "out" / PAIRS, "different")
    assert audit(tmp_path / "lists", **options).verdict("DS3") == "pass"  # type: ignore[arg-type]
    judge(tmp_path / "out" / PAIRS, "same")
    report = audit(tmp_path / "lists", **options)  # type: ignore[arg-type]
    assert report.verdict("DS3") == "fail"
    assert report.data()["judged"]["nearly_same"]["precision"] == 1.0
    assert report.repair(tmp_path / "repaired")["status"] == 0
    assert (tmp_path / "repaired" / "train.txt").read_text() == "circle.png\n"
