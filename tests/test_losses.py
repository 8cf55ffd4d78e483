"""The losses by hand-computed numbers, and masks under which nothing becomes NaN."""

import math

import pytest

pytest.importorskip("torch")

import torch

from agents.networks import MASKED, masked_logits
from training import losses

LN = math.log


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def policy(logits: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns log-probabilities and entropy as the trainer computes them."""
    log_probs = losses.log_probabilities(masked_logits(logits, mask))
    return log_probs, losses.masked_entropy(log_probs, mask)


# ------------------------------------------------------------------------------------------------- masks and entropy


def test_t01_entropy_over_legal_actions_only() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.5, -1.0]], requires_grad=True)
    mask = torch.tensor([[1, 0, 1, 0]], dtype=torch.int8)
    log_probs, entropy = policy(logits, mask)
    assert log_probs.exp()[0].tolist() == pytest.approx([0.817574, 0, 0.182426, 0], abs=1e-6)
    # Over all four actions it would be 1.014403.
    assert entropy.tolist() == pytest.approx([0.475052], abs=1e-6)

    entropy.sum().backward()
    # dH/dz of a legal action is -p (log p + H).
    wanted = [-0.817574 * (LN(0.817574) + 0.475052), 0, -0.182426 * (LN(0.182426) + 0.475052), 0]
    assert logits.grad[0].tolist() == pytest.approx(wanted, abs=1e-5)
    assert logits.grad[0, [1, 3]].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["int8", "bool", "float32"])
def test_a_mask_of_any_type(dtype: str) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.5, -1.0]])
    mask = torch.tensor([[1, 0, 1, 0]]).to(getattr(torch, dtype))
    assert policy(logits, mask)[1].tolist() == pytest.approx([0.475052], abs=1e-6)


@pytest.mark.parametrize(
    ("mask", "probs"),
    [
        ([1, 1, 1, 1], [0.5, 0, 0, 0.5]),
        ([1, 1, 0, 0], [1, 0, 0, 0]),
        ([0, 1, 1, 0], [0, 0, 1, 0]),
        ([1, 0, 0, 1], [0.5, 0, 0, 0.5]),
        ([0, 0, 1, 0], [0, 0, 1, 0]),
        ([1, 0, 0, 0], [1, 0, 0, 0]),
    ],
)
def test_t01_the_largest_float16_logits_are_no_nan(mask: list[int], probs: list[float]) -> None:
    logits = torch.tensor([[65504.0, -65504.0, 0.0, 65504.0]], dtype=torch.float16, requires_grad=True)
    log_probs, entropy = policy(logits, torch.tensor([mask]))
    assert log_probs.isfinite().all()
    assert log_probs.exp()[0].tolist() == pytest.approx(probs)
    assert entropy.tolist() == pytest.approx([LN(2) if 0.5 in probs else 0], abs=1e-6)
    (entropy.sum() + log_probs.sum()).backward()
    assert logits.grad.isfinite().all()


def test_t02_one_legal_action() -> None:
    logits = torch.tensor([[0.3, -2.0, 5.0]], requires_grad=True)
    log_probs, entropy = policy(logits, torch.tensor([[1, 0, 0]]))
    assert log_probs[0, 0].item() == 0
    assert log_probs.exp()[0].tolist() == [1, 0, 0]
    assert entropy.tolist() == [0]
    (entropy.sum() + log_probs[0, 0]).backward()
    assert logits.grad[0].tolist() == [0, 0, 0]


def test_t02_no_legal_action_is_finite_and_says_never() -> None:
    """The collector refuses to sample from such a row; the functions here only keep it from spoiling a batch."""
    logits = torch.tensor([[0.3, -2.0, 5.0], [0.3, -2.0, 5.0]], requires_grad=True)
    mask = torch.tensor([[0, 0, 0], [1, 1, 1]])
    assert masked_logits(logits, mask)[0].tolist() == [MASKED] * 3
    log_probs, entropy = policy(logits, mask)
    assert entropy[0].item() == 0
    (entropy.sum() + log_probs[1].sum()).backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0].tolist() == [0, 0, 0]


def test_the_policy_is_the_softmax_of_the_legal_logits() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = 8 * torch.randn(200, 108, generator=generator)
    mask = torch.rand(200, 108, generator=generator) < torch.rand(200, 1, generator=generator)
    mask[:, 7] |= ~mask.any(dim=1)
    logits.requires_grad_()
    log_probs, entropy = policy(logits, mask)
    chosen = mask.to(torch.int64).argmax(dim=1, keepdim=True)
    (entropy.sum() + log_probs.gather(1, chosen).sum()).backward()
    assert (logits.grad[~mask] == 0).all()
    for row in range(200):
        legal = [math.exp(z) for z in logits[row, mask[row]].tolist()]
        wanted = [z / sum(legal) for z in legal]
        assert log_probs[row, mask[row]].exp().tolist() == pytest.approx(wanted, abs=1e-6)
        assert log_probs[row, ~mask[row]].exp().sum().item() == 0
        assert entropy[row].item() == pytest.approx(-sum(p * LN(p) for p in wanted if p > 0), abs=1e-5)


# ---------------------------------------------------------------------------------------------------------- losses


def test_clipped_policy_loss() -> None:
    #          ratio, advantage, the smaller of both products
    rows = [
        (1.5, 2.0, 2.4),  # clipped at 1.2: no gain from going on
        (1.5, -1.0, -1.5),  # a bad action that became likelier is not clipped
        (0.5, 2.0, 1.0),
        (0.5, -1.0, -0.8),  # clipped at 0.8
        (1.1, 1.0, 1.1),
    ]
    old = torch.tensor([-1.0, -0.2, -3.0, -2.0, -0.5])
    new = (old + torch.tensor([LN(ratio) for ratio, _, _ in rows])).requires_grad_()
    loss = losses.clipped_policy_loss(new, old, torch.tensor([advantage for _, advantage, _ in rows]), clip=0.2)
    assert loss.item() == pytest.approx(-(2.4 - 1.5 + 1.0 - 0.8 + 1.1) / 5)
    loss.backward()
    # -ratio x advantage / 5 where it is not clipped.
    assert new.grad.tolist() == pytest.approx([0, 0.3, -0.2, 0, -0.22], abs=1e-6)


def test_value_loss() -> None:
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = losses.value_loss(values, torch.tensor([1.0, 0.0, 6.0]))
    assert loss.item() == pytest.approx((0 + 4 + 9) / 6)
    loss.backward()
    assert values.grad.tolist() == pytest.approx([0, 2 / 3, -1])


@pytest.mark.parametrize(
    ("values", "targets", "share"),
    [
        ([0.0, 1.0, 5.0], [0.0, 2.0, 4.0], 0.75),  # errors 0, 1, -1 of variance 1; targets of variance 4
        ([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], 1.0),
        ([3.0, 4.0, 6.0], [1.0, 2.0, 4.0], 1.0),  # a constant error is no variance
        ([7.0, 7.0, 7.0], [0.0, 2.0, 4.0], 0.0),
        ([0.0, -2.0, -4.0], [0.0, 2.0, 4.0], -3.0),
        ([0.0, 1.0, 2.0], [5.0, 5.0, 5.0], 0.0),  # nothing to explain
    ],
)
def test_explained_variance(values: list[float], targets: list[float], share: float) -> None:
    assert losses.explained_variance(torch.tensor(values), torch.tensor(targets)) == pytest.approx(share, abs=1e-6)
