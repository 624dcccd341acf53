import math
import subprocess
import sys

import pytest

from curation.benchmarks.imagenet_losses import background_loss, background_weights, entropic_openset_loss, softmax_loss
from curation.core.errors import UsageError
from tests.rounding import SINGLE, gamma

torch = pytest.importorskip("torch", reason="torch is not installed")
functional = torch.nn.functional

# Softmax outputs that are exact: logits are their logarithms.
HALVES = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [1 / 3, 1 / 3, 1 / 3]]


def logits_of(probabilities: list[list[float]]) -> "torch.Tensor":
    return torch.tensor(probabilities, dtype=torch.float64).log().requires_grad_()


def drawn(n: int, classes: int, lowest: int, seed: int = 0) -> tuple["torch.Tensor", "torch.Tensor"]:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, classes, generator=generator, dtype=torch.float64, requires_grad=True)
    return logits, torch.randint(lowest, classes, (n,), generator=generator)


def test_softmax_loss_of_a_hand_worked_batch() -> None:
    # -log 1/2 for the first, -log 1/4 for the second; the negative is left out of sum and N.
    loss = softmax_loss(logits_of(HALVES), torch.tensor([0, 2, -1]))
    assert loss.item() == pytest.approx((math.log(2) + math.log(4)) / 2, abs=1e-12)


def test_entropic_loss_of_a_hand_worked_batch() -> None:
    # A negative at (1/2, 1/4, 1/4): (log 2 + 2 log 4) / 3; a uniform one: log 3.
    loss = entropic_openset_loss(logits_of([*HALVES, HALVES[0]]), torch.tensor([0, 1, -1, -1]))
    expected = (math.log(2) + math.log(2) + math.log(3) + (math.log(2) + 2 * math.log(4)) / 3) / 4
    assert loss.item() == pytest.approx(expected, abs=1e-12)


def test_background_loss_of_a_hand_worked_batch() -> None:
    # K = 2; six samples, of class 0 three, class 1 one, background two: w = 6 / (3 * 3, 3 * 1, 3 * 2).
    weights = background_weights(torch.tensor([0, 0, 0, 1, -1, -1]), 2).double()
    # Quotients of small whole numbers in float32, as torch has them by default.
    assert weights.tolist() == pytest.approx([2 / 3, 2, 1], rel=SINGLE)
    rounded = gamma(2)  # of a weight, and of the sum of weights
    labels = torch.tensor([0, 1, -1])
    values = [2 / 3 * math.log(2), 2 * math.log(2), 1 * math.log(3)]
    logits = logits_of(HALVES)
    assert background_loss(logits, labels, weights, reduction="none").tolist() == pytest.approx(values, rel=rounded)
    assert background_loss(logits, labels, weights).item() == pytest.approx(sum(values) / 3, rel=rounded)
    total = background_loss(logits, labels, weights, reduction="weighted_mean").item()
    assert total == pytest.approx(sum(values) / (2 / 3 + 2 + 1), rel=rounded)


def test_softmax_loss_equals_torch_that_ignores_negatives() -> None:
    logits, labels = drawn(64, 7, -1)
    ours = softmax_loss(logits, labels)
    theirs = functional.cross_entropy(logits, labels, ignore_index=-1)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    for loss in (ours, theirs):
        loss.backward(retain_graph=True)
    assert (softmax_loss(logits, labels, reduction="none")[labels < 0] == 0).all()


def test_background_loss_equals_torch_with_its_weighted_mean() -> None:
    logits, labels = drawn(64, 6, 0)
    weights = torch.rand(6, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.1
    negatives = torch.where(labels == 5, -1, labels)
    for given in (labels, negatives):
        ours = background_loss(logits, given, weights, reduction="weighted_mean")
        assert torch.allclose(ours, functional.cross_entropy(logits, labels, weight=weights), rtol=0, atol=1e-12)
        total = background_loss(logits, given, weights, reduction="sum")
        theirs = functional.cross_entropy(logits, labels, weight=weights, reduction="sum")
        assert torch.allclose(total, theirs, rtol=0, atol=1e-10)
        assert torch.allclose(background_loss(logits, given, weights), theirs / 64, rtol=0, atol=1e-12)


def test_entropic_loss_equals_torch_with_soft_targets() -> None:
    logits, labels = drawn(64, 5, -1)
    targets = torch.full((64, 5), 0.2, dtype=torch.float64)
    known = labels >= 0
    targets[known] = functional.one_hot(labels[known], 5).double()
    assert torch.allclose(
        entropic_openset_loss(logits, labels), functional.cross_entropy(logits, targets), rtol=0, atol=1e-12
    )


def test_the_gradient_of_a_uniform_negative_is_zero_and_of_another_is_not() -> None:
    uniform = torch.full((1, 4), 3.7, dtype=torch.float64, requires_grad=True)
    entropic_openset_loss(uniform, torch.tensor([-1])).backward()
    assert uniform.grad.abs().max() < 1e-15
    other = logits_of([HALVES[0]])
    entropic_openset_loss(other, torch.tensor([-1])).backward()
    # The gradient is softmax minus target: (1/2 - 1/3, 1/4 - 1/3, 1/4 - 1/3).
    assert other.grad[0].tolist() == pytest.approx([1 / 6, -1 / 12, -1 / 12])


@pytest.mark.parametrize("loss", [softmax_loss, background_loss, entropic_openset_loss])
@pytest.mark.parametrize("reduction", ["mean", "weighted_mean", "sum"])
def test_an_empty_batch_is_zero_and_can_be_trained_on(loss: object, reduction: str) -> None:
    logits = torch.zeros((0, 3), requires_grad=True)
    value = loss(logits, torch.zeros(0, dtype=torch.int64), reduction=reduction)
    value.backward()
    assert value.item() == 0
    assert logits.grad.shape == (0, 3)


def test_large_logits_do_not_overflow() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0]])
    assert softmax_loss(logits, torch.tensor([1])).item() == 2e4
    assert math.isfinite(entropic_openset_loss(logits, torch.tensor([-1])).item())


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        (torch.zeros(3, 2), torch.tensor([0, 1])),
        (torch.zeros(3), torch.tensor([0, 1, 0])),
        (torch.zeros(2, 2), torch.tensor([0, -2])),
        (torch.zeros(2, 2), torch.tensor([0, 2])),
        (torch.zeros(2, 2), torch.tensor([0.0, 1.0])),
        (torch.zeros(2, 2), torch.tensor([0, 1], dtype=torch.uint8)),
        (torch.zeros(2, 2), torch.tensor([False, True])),
    ],
)
def test_what_does_not_fit_is_refused(logits: "torch.Tensor", labels: "torch.Tensor") -> None:
    for loss in (softmax_loss, entropic_openset_loss, background_loss):
        with pytest.raises(UsageError):
            loss(logits, labels)


def test_weights_need_samples_of_every_class() -> None:
    with pytest.raises(UsageError) as caught:
        background_weights(torch.tensor([0, 0, -1]), 2)
    assert caught.value.found == "none of class 1"
    with pytest.raises(UsageError):
        background_loss(torch.zeros(1, 3), torch.tensor([0]), torch.ones(2))
    with pytest.raises(UsageError):
        softmax_loss(torch.zeros(1, 3), torch.tensor([0]), reduction="median")  # type: ignore[arg-type]


def test_the_module_loads_without_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; import curation.benchmarks.imagenet_losses as l\n"
    code += "from curation.core.errors import MissingExtraError\n"
    code += "try: l._torch()\nexcept MissingExtraError: print('told')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "told\n"
