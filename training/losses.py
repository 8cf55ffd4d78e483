"""The losses, as small pure functions."""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from gin_env.cards import NUM_CARDS
from gin_env.view import PLANE


def log_probabilities(logits: Tensor) -> Tensor:
    """Log-probabilities (N, A) of masked logits (N, A), in float32 at least.

    The distance of two float16 logits can be twice the largest float16: in that type the result would be -inf, and an
    entropy made of it NaN.
    """
    return torch.log_softmax(logits, dim=1, dtype=torch.promote_types(logits.dtype, torch.float32))


def masked_entropy(log_probs: Tensor, mask: Tensor) -> Tensor:
    """Entropy (N,) in nats over the legal actions only.

    Args:
        log_probs: (N, A), of masked logits (finite everywhere).
        mask: (N, A), 1 for legal actions.
    """
    # Illegal entries are left out before anything is multiplied, so that their gradient is exactly zero.
    safe = log_probs.masked_fill(mask == 0, 0)
    return -(safe.exp().masked_fill(mask == 0, 0) * safe).sum(dim=1)


def clipped_policy_loss(new: Tensor, old: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """PPO's clipped surrogate (Schulman et al. 2017, equation 7), to be minimised; a scalar.

    Args:
        new: (N,) log-probabilities of the actions now.
        old: (N,) log-probabilities when they were taken.
        advantages: (N,).
        clip: Bound on the change of the ratio.
    """
    ratio = (new - old).exp()
    return -torch.min(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages).mean()


def value_loss(values: Tensor, targets: Tensor) -> Tensor:
    """Half the mean squared error; a scalar."""
    return 0.5 * (values - targets).square().mean()


def explained_variance(values: Tensor, targets: Tensor) -> float:
    """Share of the targets' variance that the values explain: 1 is all, 0 is none."""
    spread = targets.var()
    return float(1 - (targets - values).var() / spread) if spread > 0 else 0.0


def hand_loss(guess: Tensor, hidden: Tensor, observation: Tensor) -> Tensor:
    """How badly the opponent's hand was guessed: mean cross-entropy in nats for each unseen card; a scalar.

    Args:
        guess: (N, 52) logits of the probability that the opponent holds each card.
        hidden: (N, H), whose first 52 numbers are the opponent's hand.
        observation: (N, D), which tells what is unseen.
    """
    unseen = observation[:, PLANE["unseen"] : PLANE["unseen"] + NUM_CARDS]
    loss = binary_cross_entropy_with_logits(guess, hidden[:, :NUM_CARDS], weight=unseen, reduction="sum")
    return loss / unseen.sum().clamp(min=1)
