"""Pairs of photos beside each other: what is shown, judged by requests and by keys, and the lists that follow."""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageOps

from curation.cli import main
from curation.core.errors import UsageError
from curation.review.app.images import arranged
from curation.review.app.pair_images import SHEETS, pair_images
from curation.review.app.session import review_from_files
from curation.review.decisions.files import read_decisions
from curation.review.decisions.pairs import PAIRS, PhotoPair, pair_id, pairs_csv, read_pairs
from curation.review.decisions.review_folder import DROPS
from tests.extensions.leaks.leak_world import copies_of, jpeg, picture, write_benchmark, write_tar
from tests.review.app.scripted_reviewer import Reviewer, ReviewServer, browser_page
from tests.review.app.test_serving import serving
from tests.shell import Shell

PLANTED, ALIKE = 200, 50
"""Pairs in all, and those of two photos that look alike."""
RADIUS = ("--set", "radius=80")


def with_another_object(data: bytes, number: int) -> bytes:
    """Return a photo that looks like another one and is none: something else lies in it."""
    photo = Image.open(io.BytesIO(data)).convert("RGB")
    ImageDraw.Draw(photo).ellipse((40, 40, 56 + number % 5, 56), fill=(200, 30, 30))
    return jpeg(photo)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, str]]:
    """The pairs.csv of a leak check, and what each pair of it is."""
    pytest.importorskip("imagehash")
    folder = tmp_path_factory.mktemp("planted")
    _, photos = write_benchmark(folder, PLANTED)
    names = list(photos)
    corpus = copies_of({name: photos[name] for name in names[ALIKE:]})
    corpus |= {f"alike-{n}.jpg": with_another_object(photos[name], n) for n, name in enumerate(names[:ALIKE])}
    (folder / "corpus").mkdir()
    # One half lies in files, the other in a shard.
    items = sorted(corpus.items())
    write_tar(folder / "00000.tar", items[::2])
    for name, data in items[1::2]:
        (folder / "corpus" / name).write_bytes(data)
    command = ["similarity", "leaks", str(folder / "manifest"), "--photos", str(folder / "photos")]
    command += ["--corpus", str(folder / "corpus"), "--corpus", str(folder / "00000.tar"), "--out", str(folder / "out")]
    command += RADIUS
    assert main(command) == 1
    pairs = read_pairs(folder / "out" / PAIRS)
    assert len(pairs) == PLANTED
    doubtful = {pair_id(pair) for pair in pairs[::20]}
    truth = {pair_id(pair): "different" if "alike-" in pair.right else "same" for pair in pairs}
    return folder / "out" / PAIRS, {name: "unsure" if name in doubtful else word for name, word in truth.items()}


def require_lists(folder: Path, pairs: Path, truth: Mapping[str, str], shell: Shell, out: Path) -> None:
    """Check what a finished review gives: decisions, both drop lists, the precision of each kind."""
    shell.out("review", "export", "--folder", folder, "--out", out / PAIRS, "--drops", out)
    judged = read_pairs(out / PAIRS)
    assert [(pair.left, pair.right, pair.decision) for pair in judged] == [
        (pair.left, pair.right, truth[pair_id(pair)]) for pair in read_pairs(pairs)
    ]
    same = [pair for pair in judged if truth[pair_id(pair)] == "same"]
    assert [(out / name).read_text().split() for name in DROPS] == [
        sorted({pair.left for pair in same}),
        sorted({pair.right for pair in same}),
    ]
    data = shell.data("review", "status", "--folder", folder, "--json")
    for kind, counts in data["judged"].items():
        words = [truth[pair_id(pair)] for pair in judged if pair.kind == kind]
        assert [counts[word] for word in ("same", "different", "unsure", "unjudged")] == [
            *map(words.count, ("same", "different", "unsure")),
            0,
        ]
        assert counts["precision"] == words.count("same") / (words.count("same") + words.count("different"))


def test_each_picture_shows_both_photos(planted: tuple[Path, Mapping[str, str]], tmp_path: Path) -> None:
    pairs = read_pairs(planted[0])
    images = arranged(pair_images(pairs, tmp_path), (), batch_size=50)
    assert len(images) == PLANTED
    doubt = {pair_id(pair): pair.value / (pair.threshold or 1) for pair in pairs}
    assert [doubt[name] for name in images.ids] == sorted(doubt.values(), reverse=True)
    by_id = {pair_id(pair): pair for pair in pairs}
    for name, path, details in zip(images.ids, images.paths, images.details, strict=True):
        pair = by_id[name]
        assert details[0] == f"left: {pair.left} ({pair.left_in})"
        assert path is not None
        sheet = Image.open(path)
        half = (sheet.width - 60) // 2
        left = ImageOps.contain(Image.open(pair.left_path).convert("RGB"), (half, half))
        shown = sheet.crop((20, 20, 20 + half, sheet.height - 20))
        assert np.abs(np.asarray(shown, int) - np.asarray(left, int)).mean() < 3
        if "!" not in pair.right_path:
            right = ImageOps.contain(Image.open(pair.right_path).convert("RGB"), (half, half))
            shown = sheet.crop((half + 40, 20, sheet.width - 20, sheet.height - 20))
            assert np.abs(np.asarray(shown, int) - np.asarray(right, int)).mean() < 3


def test_a_pair_without_a_readable_photo_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        picture(ord(name)).save(tmp_path / f"{name}.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    write_tar(tmp_path / "x.tar", [("a.png", (tmp_path / "a.png").read_bytes())])
    paths = ("b.png", "broken.png", "absent.png", "x.tar!a.png", "x.tar!absent.png")
    pairs = [
        PhotoPair("a", f"r{n}", str(tmp_path / "a.png"), str(tmp_path / path), "train", "test", "nearly_same", n, 9)
        for n, path in enumerate(paths)
    ]
    images = arranged(pair_images(pairs, tmp_path / "review"), (), batch_size=2)
    assert images.ids == (pair_id(pairs[3]), pair_id(pairs[0]))
    assert images.bad_photos == {"missing": sorted(pair_id(pairs[n]) for n in (1, 2, 4))}
    assert len(list((tmp_path / "review" / SHEETS).iterdir())) == 2


def test_a_review_of_pairs_names_nothing_else(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / PAIRS).write_text(pairs_csv([PhotoPair("a", "b", "", "", "x", "y", "perceptual", 1, 2)]))
    with pytest.raises(UsageError, match="names its photos"):
        review_from_files(folder=tmp_path / "r", pairs=tmp_path / PAIRS, photos=tmp_path, no_app=True)
    with pytest.raises(UsageError, match="A review of pairs needs a file of pairs"):
        review_from_files(folder=tmp_path / "r", stage="pair", photos=tmp_path, no_app=True)
    assert not (tmp_path / "r").exists()


@pytest.mark.mongo
@pytest.mark.slow
def test_two_hundred_pairs_end_in_the_right_lists(
    review_environment: dict[str, str], planted: tuple[Path, Mapping[str, str]], tmp_path: Path, shell: Shell
) -> None:
    pairs, truth = planted
    folder = tmp_path / "leaks"
    with serving(review_environment, folder, "--pairs", str(pairs)) as served:
        samples = served.samples("leaks", PLANTED)
        assert sorted(samples.values()) == sorted(truth)
        refused = served.judge("leaks", "near", list(samples)[:1])
        assert "is not a decision of stage 'pair'" in refused["message"]
        for sample, image in samples.items():
            assert served.judge("leaks", truth[image], [sample])["images"] == 1
    require_lists(folder, pairs, truth, shell, tmp_path / "out")
    told = shell.err("review", "export", "--folder", folder, "--out", tmp_path / "pairs.jsonl")
    assert "Pairs are written as CSV" in told
    exported = tmp_path / "rows.jsonl"
    exported.write_bytes((folder / "decisions.jsonl").read_bytes())
    told = shell.err("review", "apply", pairs.parents[1] / "manifest", "--decisions", exported,
                       "--version", "2.0.0", "--out", tmp_path / "new")  # fmt: skip
    assert "Decisions on pairs change no manifest" in told
    # The leak check takes the file as it is.
    world = pairs.parents[1]
    command = ["similarity", "leaks", str(world / "manifest"), "--photos", str(world / "photos"), "--corpus"]
    command += [
        str(world / "corpus"),
        "--corpus",
        str(world / "00000.tar"),
        *RADIUS,
        "--judged",
        str(tmp_path / "out" / PAIRS),
    ]
    assert main([*command, "--out", str(tmp_path / "judged")]) == 1
    for ours, theirs in zip(DROPS, ("drop-benchmark.txt", "drop-corpus.txt"), strict=True):
        assert (tmp_path / "out" / ours).read_text() == (tmp_path / "judged" / theirs).read_text()


@pytest.mark.mongo
@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pairs_are_judged_by_keys(
    review_environment: dict[str, str], planted: tuple[Path, Mapping[str, str]], tmp_path: Path, shell: Shell
) -> None:
    every, truth = planted
    some = [
        pair for word in ("same", "different", "unsure") for pair in read_pairs(every) if truth[pair_id(pair)] == word
    ]
    pairs = tmp_path / PAIRS
    pairs.write_text(pairs_csv(some[::10]))
    server = ReviewServer(tmp_path / "keys", review_environment, ("--pairs", str(pairs)))
    server.start()
    try:
        with browser_page() as page:
            reviewer = Reviewer(page, server)
            reviewer.open()
            assert [word for word in ("same", "different", "unsure", "near") if word in reviewer.bar()] == [
                "same", "different", "unsure",
            ]  # fmt: skip
            reviewer.enlarge()
            page.locator("#curation-review-evidence").get_by_text("left: ").wait_for()
            pressed = []
            for _ in range(len(some[::10])):
                image = reviewer.shown()
                reviewer.judge(truth[image][0])
                pressed.append((image, truth[image]))
            reviewer.wait_for_message("End of the list")
            page.goto("about:blank")
        assert [(row.image_id, row.action) for row in read_decisions(server.log).decisions] == pressed
        server.stop()
    finally:
        server.kill()
    require_lists(server.folder, pairs, truth, shell, tmp_path / "out")
