"""Two people apart, then a third: drawn images judged by keys, blind, with an overlap; adjudicated and applied.

`CURATION_REVIEW_IMAGES=2000` judges so many images, which takes about a quarter of an hour; -s prints the times.
"""

import os
from collections import Counter
from hashlib import sha256
from pathlib import Path
from statistics import median

import pytest

from curation.manifest.header import ClassEntry
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import write_manifest
from curation.review.decisions.decision import ACTIONS
from curation.review.decisions.files import read_decisions
from tests.review.app.review_world import coco_id
from tests.review.app.scripted_reviewer import Reviewer, ReviewServer, browser_page, draw_photos, new_page
from tests.shell import Shell
from tests.worlds.listed_manifest import manifest_of_lists

DRAWN = int(os.environ.get("CURATION_REVIEW_IMAGES", "40"))
POOL = DRAWN * 5 // 4
OVERLAP = 0.2
ACTION_OF = ACTIONS["manual"]
LETTERS = {"keep": "k", "remove": "r", "to_near": "n", "to_far": "f", "unsure": "u"}
MOSTLY = ((0.06, "remove"), (0.25, "to_near"), (0.95, "to_far"), (1, "unsure"))
WORDS = {action: word for word, action in ACTION_OF.items()}


def share(text: str) -> float:
    """Return a number from 0 to 1 by the hash of a text."""
    return int.from_bytes(sha256(text.encode()).digest()[:6]) / 2**48


def opinion(reviewer: str, image: str) -> str:
    """Return the action that a reviewer chooses: mostly that of everybody."""
    chance = share(f"truth of {image}")
    truth = next(action for most, action in MOSTLY if chance <= most)
    if share(f"{reviewer} errs on {image}") > 0.15:
        return truth
    return list(LETTERS)[int(share(f"{reviewer}, {image}") * 5)]


@pytest.mark.mongo
@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_reviewers_and_an_adjudicator(
    review_environment: dict[str, str], tmp_path: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics, stats = pytest.importorskip("sklearn.metrics"), pytest.importorskip("scipy.stats")
    annotations, photos = draw_photos(tmp_path / "drawn", POOL)
    ids = [coco_id(number) for number in range(1, POOL + 1)]
    lists = {"far": ids[: POOL // 2], "near": ids[POOL // 2 :]}
    classes = [ClassEntry(name=name, role="unknown", index=-1) for name in ("zebra", "pizza")]
    made = manifest_of_lists(lists, name="drawn", source="coco", namespace="coco", classes=classes)
    write_manifest(made, tmp_path / "m")
    folder = tmp_path / "two"
    given = (str(tmp_path / "m"), "--photos", str(photos), "--source", f"coco={annotations}", "--blind")
    given += ("--colleague", "ben", "--overlap", str(OVERLAP), "--order", "random", "--set", f"sample={DRAWN}")
    servers = [ReviewServer(folder, review_environment, given), ReviewServer(folder, review_environment, (), "ben")]
    pressed: dict[str, dict[str, str]] = {"anna": {}, "ben": {}, "cleo": {}}
    times: list[tuple[float, float]] = []
    try:
        for server in servers:
            server.start()
        with browser_page() as page:
            judges = {"anna": Reviewer(page, servers[0]), "ben": Reviewer(new_page(page.context.browser), servers[1])}
            for judge in judges.values():
                judge.open()
                judge.enlarge()
            while judges:
                for name, judge in [*judges.items()]:
                    image = judge.shown()
                    judge.judge(LETTERS[opinion(name, image)])
                    assert image not in pressed[name]
                    pressed[name][image] = opinion(name, image)
                    if judge.page.locator('[data-cy="modal"]').count():
                        times.append(judge.milliseconds())
                    else:
                        judge.wait_for_message("you have decided every image in it")
                        # What others decided is on no page.
                        assert "conflict" not in judge.page.content()
                        judge.page.goto("about:blank")
                        del judges[name]
        for server in servers:
            server.stop()
        both = sorted(pressed["anna"].keys() & pressed["ben"].keys())
        batches = [min(100, DRAWN - start) for start in range(0, DRAWN, 100)]
        assert len(both) == sum(-(-batch // 5) for batch in batches)
        assert len(pressed["anna"].keys() | pressed["ben"].keys()) == DRAWN
        conflicts = {image for image in both if pressed["anna"][image] != pressed["ben"][image]}

        cleo = ReviewServer(folder, review_environment, (), "cleo", "adjudicate")
        servers.append(cleo)
        cleo.start()
        with browser_page() as page:
            judge = Reviewer(page, cleo)
            judge.open()
            judge.enlarge()
            for _ in conflicts:
                image = judge.shown()
                votes = [pressed[name][image] for name in ("anna", "ben")]
                # Both sides are seen.
                for name, action in zip(("anna", "ben"), votes, strict=True):
                    page.locator("#curation-review-evidence").get_by_text(f"{name}: {WORDS[action]}").wait_for()
                chosen = next(action for action in votes if action != "unsure")
                judge.judge(LETTERS[chosen])
                pressed["cleo"][image] = chosen
            page.goto("about:blank")
        cleo.stop()
    finally:
        for server in servers:
            server.kill()
    assert pressed["cleo"].keys() == conflicts

    rows = read_decisions(folder / "decisions.jsonl").decisions
    for name, chosen in pressed.items():
        assert {row.image_id: row.action for row in rows if row.reviewer == name} == chosen
    assert len(rows) == sum(map(len, pressed.values()))
    status = shell.data("review", "status", "--folder", folder, "--json")
    for row in status["reviewers"]:
        counts = Counter(WORDS[action] for action in pressed[row["reviewer"]].values())
        assert (row["images"], row["verdicts"]) == (counts.total(), counts)
    votes_of = [[pressed[name][image] for image in both] for name in ("anna", "ben")]
    [agreed] = status["agreement"]
    [pair] = agreed["pairs"]
    assert (pair["images"], pair["same"]) == (len(both), len(both) - len(conflicts))
    assert pair["kappa"]["value"] == pytest.approx(metrics.cohen_kappa_score(*votes_of), abs=1e-12)
    for one in agreed["slices"]:
        if one["by"] == "action" and one["kappa"]["value"] is not None:
            is_it = [[action == one["name"] for action in votes] for votes in votes_of]
            assert one["kappa"]["value"] == pytest.approx(metrics.cohen_kappa_score(*is_it), abs=1e-12)

    final = {**pressed["anna"], **pressed["ben"], **pressed["cleo"]}
    doubtful = sum(action in ("remove", "unsure") for action in final.values())
    bound = stats.beta.ppf(0.95, doubtful + 1, DRAWN - doubtful)
    remainder = status["remainder"]
    assert (remainder["positives"], remainder["judged"], remainder["unseen"]) == (doubtful, DRAWN, POOL - DRAWN)
    assert remainder["share"] == pytest.approx(bound, rel=1e-9)

    shell.out("review", "apply", tmp_path / "m", "--decisions", folder, "--version", "1.1.0", "--near", "near",
              "--far", "far", "--out", tmp_path / "m2")  # fmt: skip
    parts = {name: set(images) for name, images in lists.items()}
    for image, action in final.items():
        if action != "keep" and action != "unsure":
            for name, images in parts.items():
                (images.add if action == f"to_{name}" else images.discard)(image)
    made = load_manifest(tmp_path / "m2")
    assert {name: set(made.ids(name)) for name in parts} == parts
    notes = " ".join(made.header.notes)
    assert f"kappa {pair['kappa']['value']:.3f}" in notes
    assert "Clopper-Pearson" in notes
    disk, seen = (median(column) for column in zip(*times, strict=True))
    with capsys.disabled():
        print(f"\n{DRAWN} images, {len(rows)} keys, {len(conflicts)} conflicts of {len(both)}", end=", ")
        print(f"kappa {pair['kappa']['value']:.4f}, bound {bound:.4%}; key to disk {disk:.0f} ms", end=", ")
        print(f"to the next image {seen:.0f} ms (medians of {len(times)}), load {os.getloadavg()[0]:.1f}")
