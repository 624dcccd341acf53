import pytest

from curation.evaluation.class_scores import class_scores
from curation.evaluation.classification import evaluate_classifiers
from curation.evaluation.oscr import VARIANTS
from tests.evaluation.classification_rows import of_measured
from tests.evaluation.oscr_cases import BACKGROUND, LABELS, SOFTMAX, table

SOFT = class_scores(LABELS, table(SOFTMAX), kind="probabilities")
GROUND = class_scores(LABELS, table(BACKGROUND), kind="probabilities", background="last")


def test_only_a_classifier_with_a_background_column_has_the_table2_variant() -> None:
    found = evaluate_classifiers({"soft": SOFT, "ground": GROUND}, variants=tuple(VARIANTS), queries=("0.25",))
    assert {name: list(one) for name, one in found.items()} == {
        "soft": ["exact", "paper", "comparison"], "ground": list(VARIANTS),
    }  # fmt: skip
    assert of_measured(found)["ground"]["oscr"]["table2"]["unknown"]["ccr_at_fpr"] == {"0.25": 0.25}


def test_accuracy_and_rates_by_class() -> None:
    soft = of_measured(evaluate_classifiers({"soft": SOFT}, queries=("0.25", "1")))["soft"]
    rows = {row["class"]: row for row in soft["classes"]}
    assert [row["n"] for row in rows.values()] == [3, 3, 2]
    assert [row["accuracy"] for row in rows.values()] == [2 / 3, 2 / 3, 1]
    assert soft["macro_accuracy"] == pytest.approx(7 / 9)
    assert rows["0"]["mean_score"] == pytest.approx((1 + 0.75 + 0.25) / 3)
    # Unknown at 0.25: one may pass, so the threshold is .75: only the scores 1 and .875 are above.
    assert [row["ccr_at_fpr"]["unknown.0.25"] for row in rows.values()] == [1 / 3, 1 / 3, 0]
    assert soft["oscr"]["exact"]["unknown"]["macro_ccr_at_fpr"]["0.25"] == pytest.approx(2 / 9)


def test_validation_gives_gamma_and_the_threshold_of_oosa() -> None:
    soft = of_measured(evaluate_classifiers({"soft": SOFT}, {"soft": SOFT}))["soft"]
    assert soft["validation"]["confidence"]["negative"]["gamma"] == pytest.approx(0.7408854167)
    accuracy = soft["openset_accuracy"]["negative"]["strict"]
    assert accuracy["oosa"] == accuracy["iosa"]
