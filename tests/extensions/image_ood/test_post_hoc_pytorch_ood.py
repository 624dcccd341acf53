"""The same methods in the package pytorch-ood: equal up to sign, or up to the change that the documentation names."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import pytest

from curation.extensions.image_ood.post_hoc import METHODS
from curation.signals.similarity.open_clip import import_torchvision
from tests.extensions.image_ood.post_hoc_cases import D, K, drawn

torch = pytest.importorskip("torch")
try:
    # pytorch-ood imports torchvision at its top, which fails beside a torch of another build.
    import_torchvision()
    from pytorch_ood import detector
except (ImportError, RuntimeError) as error:
    pytest.skip(f"pytorch-ood cannot be loaded: {error}", allow_module_level=True)
CASE = drawn()
SETTINGS: dict[str, Any] = {"k": 5, "percentile": 75.0, "top": None, "dimension": None}


def ours_of(name: str, case: Any, settings: Any) -> Any:
    method = METHODS[name]
    taken = {key: value for key, value in settings.items() if key in signature(method.score).parameters}
    return method.score(*(getattr(case, one) for one in method.needs), **taken)


def theirs_of(name: str, case: Any, settings: Any) -> Any:
    """Return the negated outlier scores of the package; the last layer is in float32 there for DICE and ViM."""
    features, train, labels, logits = map(torch.from_numpy, (case.features, case.train, case.labels, case.logits))
    weight, bias = map(torch.from_numpy, (case.layer.weight, case.layer.bias))
    maps, single = features[:, :, None, None], (weight.float(), bias.float())

    def head(given: Any) -> Any:
        return given.flatten(1) @ weight.T + bias

    def fitted(made: Any, *arrays: Any) -> Any:
        return made.fit_features(*arrays[:2]).predict_features(arrays[2])

    made: dict[str, Callable[[], Any]] = {
        "msp": lambda: detector.MaxSoftmax(None).predict_logits(logits),
        "energy": lambda: detector.EnergyBased(None).predict_logits(logits),
        "gen": lambda: detector.GEN(None, gamma=0.1, M=settings["top"]).predict_logits(logits),
        "knn": lambda: fitted(detector.KNN(None, k=settings["k"]), train, labels, features),
        "mahalanobis": lambda: fitted(detector.Mahalanobis(None), train.float(), labels, features.float()),
        "ddu": lambda: fitted(detector.GMM(None), train, labels, features),
        "ash": lambda: detector.ASH(
            None, head, variant="ash-s", percentile=settings["percentile"] / 100
        ).predict_feature_maps(maps),
        "dice": lambda: fitted(
            detector.DICE(None, *single, p=settings["percentile"] / 100), train.float(), labels, features.float()
        ),
        "react": lambda: detector.ReAct(
            None, head, threshold=float(np.percentile(case.train, settings["percentile"]))
        ).predict_feature_maps(maps),
        "vim": lambda: fitted(detector.ViM(None, settings["dimension"] or D // 2, *single), train, labels, features),
    }
    with torch.no_grad():
        return -made[name]().numpy().astype(np.float64)


def both(name: str, settings: Any = SETTINGS, case: Any = CASE) -> tuple[Any, Any]:
    return ours_of(name, case, settings), theirs_of(name, case, settings)


@pytest.fixture
def in_double(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the package's own code in float64: its casts to float32 become casts to float64."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize(
    ("name", "settings", "within"),
    [
        *((name, SETTINGS, 1e-12) for name in ("msp", "energy", "ash", "react")),
        ("dice", SETTINGS, 1e-11),
        ("vim", SETTINGS, 1e-9),
        ("vim", {**SETTINGS, "dimension": 2}, 1e-9),
    ],
)
def test_equal_up_to_sign_in_double_precision(name: str, settings: Any, within: float) -> None:
    ours, theirs = both(name, settings)
    assert theirs == pytest.approx(ours, rel=within, abs=within)


def test_gen_is_a_mean_there_and_a_sum_here() -> None:
    # Near logits: the package takes probabilities below 1e-7 as 1e-7.
    case = replace(CASE, logits=CASE.logits / 20)  # type: ignore[operator]
    ours, theirs = both("gen", case=case)
    assert ours == pytest.approx(K * theirs, rel=1e-12)
    ours, theirs = both("gen", {**SETTINGS, "top": 2}, case)
    assert ours == pytest.approx(2 * theirs, rel=1e-12)


def test_neighbours_are_at_distances_there_and_squared_ones_in_the_code() -> None:
    ours, theirs = both("knn")
    assert ours == pytest.approx(-(theirs**2), abs=1e-12)
    plain, _ = both("knn", {**SETTINGS, "squared": False})
    assert plain == pytest.approx(theirs, abs=1e-6)


@pytest.mark.usefixtures("in_double")
def test_mahalanobis_there_is_halved_over_the_scatter() -> None:
    ours, theirs = both("mahalanobis")
    # The package adds a ridge to the scatter.
    assert theirs == pytest.approx(ours / (2 * len(CASE.train)), rel=1e-6)  # type: ignore[arg-type]


def test_density_there_has_class_weights_and_divides_by_n() -> None:
    # With equal classes, the factor (n - 1) / n of the covariances shrinks distances and adds a constant.
    case = drawn(n_train=150)
    weighted, theirs = both("ddu", {**SETTINGS, "weighted": True}, case)
    n = 50
    fitted = replace(case, train=_widened(case.train, case.labels, math.sqrt((n - 1) / n)))
    ours = ours_of("ddu", fitted, {**SETTINGS, "weighted": True})
    # The package adds a ridge to each covariance.
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert np.corrcoef(weighted, theirs)[0, 1] > 0.999
    unweighted, _ = both("ddu", SETTINGS, case)
    assert unweighted - weighted == pytest.approx(math.log(K))


def _widened(train: Any, labels: Any, factor: float) -> Any:
    """Move each feature towards its class mean by a factor: the n - 1 covariance becomes the one over n."""
    means = np.stack([train[labels == one].mean(axis=0) for one in range(K)])
    return means[labels] + factor * (train - means[labels])
