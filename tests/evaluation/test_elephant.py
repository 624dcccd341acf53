import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import curation
from curation.benchmarks.elephant.evaluation import ElephantOptions, evaluate_elephant
from curation.manifest.header import ClassEntry
from tests.evaluation.elephant_rows import of_evaluated
from tests.evaluation.reference import World
from tests.evaluation.worlds import columns_of, worlds
from tests.toy_manifests import write_toy
from tests.worlds.coco_file import coco_content


@settings(max_examples=25)
@given(world=worlds())
def test_the_bootstrap_estimates_what_the_paper_section_states(world: World) -> None:
    found = of_evaluated(evaluate_elephant(columns_of(world), ElephantOptions(betas=("1.0",), bootstrap=1)))
    section, bootstrap = found["paper"], found["bootstrap"]
    for recall, by_reading in bootstrap["WI"].items():
        for reading, entries in by_reading.items():
            estimates = [entry["estimate"] for entry in entries]
            assert estimates == pytest.approx(section["WI"][recall][reading], abs=1e-12)
            for which, value in section["AWI"][recall][reading].items():
                assert bootstrap["AWI"][recall][reading][which]["estimate"] == pytest.approx(value, abs=1e-12)
    assert bootstrap["mAP11"]["closed"]["estimate"] == pytest.approx(section["mAP11"][0], abs=1e-12)


NAMES = {"cat": 1, "dog": 2, "elephant": 3}
AT_OBJECT, AWAY = [10, 10, 40, 40], [200, 10, 40, 40]


def drawn_parts(seed: int) -> dict[str, Any]:
    """Return 20 closed images with one object each, 60 of the wilderness, and detections that hit or miss cleanly."""
    rng = np.random.default_rng(seed)
    ids = {"closed": range(1, 21), "wilderness": rng.permutation(np.arange(1000, 1060)).tolist()}
    parts: dict[str, Any] = {}
    for part, images in ids.items():
        labels = {image: 1 + image % 2 if part == "closed" else 3 for image in images}
        found = [
            (image, int(rng.integers(1, 3)), bool(rng.random() < 0.7), float(rng.permutation(1000)[0]) / 1000)
            for image in images
            for _ in range(int(rng.integers(3, 8)))
        ]
        parts[part] = labels, found
    # WR1 is a draw of the wilderness: not its first images by id.
    return parts | {"wr1": sorted(ids["wilderness"][::3])}


def written_parts(folder: Path, parts: Mapping[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {"truth": {}, "detections": {}}
    for part in ("closed", "wilderness"):
        labels, found = parts[part]
        by_number = {number: name for name, number in NAMES.items()}
        rows = [(image, by_number[label], AT_OBJECT, {}) for image, label in labels.items()]
        used = {name: number for name, number in NAMES.items() if part == "wilderness" or number < 3}
        content = coco_content(list(labels), rows, used)
        results = [
            {"image_id": image, "category_id": label, "bbox": AT_OBJECT if hits else AWAY, "score": score}
            for image, label, hits, score in found
        ]
        for kind, value in (("truth", content), ("detections", results)):
            words[kind][part] = folder / f"{kind}_{part}.json"
            words[kind][part].write_text(json.dumps(value))
    lists = {"closed": parts["closed"][0], "wilderness": parts["wilderness"][0], "wr1": parts["wr1"]}
    ids = {name: tuple(f"coco:{image:012d}" for image in sorted(images)) for name, images in lists.items()}
    classes = [ClassEntry(name=name, role="known", index=number) for name, number in list(NAMES.items())[:2]]
    classes.append(ClassEntry(name="elephant", role="unknown", index=-1))
    manifest = write_toy(folder / "manifest", ids, classes, name="toy/wilderness", taxonomy="OSOD-I")
    return words | {"manifest": manifest}


def plain_numbers(parts: Mapping[str, Any], images: Sequence[int]) -> dict[str, Any]:
    """Compute mAP11, WI at recall 0.3 and the kinds of kept detections of closed images and some of the wilderness."""
    labels, found = parts["closed"]
    wild = [row for row in parts["wilderness"][1] if row[0] in set(images)]
    precision, impact, kinds = [], [], Counter[str]()
    for label in (1, 2):
        taken, ranked = set(), []
        for image, of, hits, score in sorted(found, key=lambda row: -row[3]):
            if of == label:
                right = hits and labels[image] == label and image not in taken
                taken |= {image} if right else set()
                ranked.append((score, right, hits, labels[image] == label))
        n = sum(value == label for value in labels.values())
        right_scores = [score for score, right, *_ in ranked if right]
        threshold = right_scores[-(-3 * n // 10) - 1]
        kept = [row for row in ranked if row[0] >= threshold]
        kinds["correct"] += sum(row[1] for row in kept)
        kinds["localization"] += sum(not right and hits and same for _, right, hits, same in kept)
        kinds["similar"] += sum(hits and not same for _, _, hits, same in kept)
        kinds["mixed_unknown"] += sum(not hits for _, _, hits, _ in kept)
        opened = [row for row in wild if row[1] == label and row[3] >= threshold]
        kinds["unknown_unknown"] += sum(row[2] for row in opened)
        kinds["mixed_unknown"] += sum(not row[2] for row in opened)
        impact.append(len(opened) / len(kept))
        everything = [(row[0], row[1]) for row in ranked] + [(row[3], False) for row in wild if row[1] == label]
        points = []
        for score in {score for score, _ in everything}:
            above = [right for other, right in everything if other >= score]
            points.append((sum(above), sum(above) / len(above)))
        envelope = [max([p for tp, p in points if 10 * tp >= tenth * n], default=0.0) for tenth in range(11)]
        precision.append(sum(envelope) / 11)
    return {"mAP11": 50 * sum(precision), "WI": sum(impact) / 2, "kinds": kinds}


@pytest.mark.parametrize("seed", range(4))
def test_each_row_is_computed_on_the_list_that_it_names(seed: int, tmp_path: Path) -> None:
    parts = drawn_parts(seed)
    given = written_parts(tmp_path, parts)
    whole = curation.evaluate.elephant(**given, bootstrap=20, variant="all")
    alone = curation.evaluate.elephant(**given, wilderness_part="wr1", stray="drop", bootstrap=20)
    without = curation.evaluate.elephant(**{key: given[key] for key in ("truth", "detections")}, bootstrap=20)
    by_id = sorted(parts["wilderness"][0])
    plain = {name: plain_numbers(parts, images) for name, images in
             {"closed": [], "wr1": parts["wr1"], "ratio 1.0": by_id[:20], "wilderness": by_id}.items()}  # fmt: skip
    assert plain["wr1"] != plain["ratio 1.0"]
    for result, name in ((whole, "wr1"), (alone, "wr1"), (without, "ratio 1.0")):
        assert {row["part"] for row in result.data["diagnosis"]} == {"closed", name}
        assert {row["part"] for row in result.data["overlaps"]} == {"closed", name}
        for part in ("closed", name):
            (row,) = (row for row in result.data["diagnosis"]
                      if (row["part"], row["recall"], row["class"]) == (part, "0.3", "all classes"))  # fmt: skip
            kinds = {key: value for key, value in row.items() if isinstance(value, int) and value}
            assert kinds == +plain[part]["kinds"], part
            on = [row for row in result.data["overlaps"] if (row["part"], row["recall"]) == (part, "0.3")]
            on_elephant = sum(row["detections"] for row in on if row["true"] == "elephant")
            assert on_elephant == plain[part]["kinds"]["unknown_unknown"]
        bands = {row["ratio"]: row for row in result.data["intervals"] if row["measure"] == "mAP11"}
        assert bands.keys() == {"closed", name}
        for part, band in bands.items():
            assert band["estimate"] == pytest.approx(plain[part]["mAP11"])
            assert band["low"] <= band["high"]
        impact = result.table("impact").query("variant == 'paper' and recall == '0.3' and over_classes == 'macro'")
        impact = impact.set_index("ratio")["WI"]
        by_ratio = {"1.0": "wr1" if result is alone else "ratio 1.0"} | ({"wr1": "wr1"} if result is whole else {})
        for ratio, part in by_ratio.items():
            assert impact[ratio] == pytest.approx(plain[part]["WI"]), (name, ratio)
        assert ("wr1" in impact) == (result is whole)
    # The row of a part has the number of this part; the two have two names.
    for result, name in ((whole, "wilderness"), (alone, "wr1"), (without, "wilderness")):
        rows = result.measures.query("variant == 'paper'").set_index(["part", "measure"])["value"]
        assert rows["closed", "mAP11"] == pytest.approx(plain["closed"]["mAP11"])
        assert rows[f"closed + {name}", "mAP11_open"] == pytest.approx(plain[name]["mAP11"])
        assert (f"closed + {name}", "mAP11") not in rows
        assert [row["part"] for row in result.data["images"]] == ["closed", name]
    # The official code: the list behind the levels has the numbers of an evaluation of this list alone.
    official = curation.evaluate.elephant(**given, wilderness_part="wr1", stray="drop", variant="official")
    for table, column in (("levels", "mAP"), ("impact", "WI"), ("levels", "n_wild_images")):
        mine, last = (
            result.table(table).query(f"variant == 'official' and ratio == '{ratio}'")[column].tolist()
            for result, ratio in ((whole, "wr1"), (official, "1.0"))
        )
        assert mine == pytest.approx(last)
