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


def dueling_values(logits: Tensor, values: Tensor, scale: float) -> Tensor:
    """What each legal action is worth (Wang et al. 2016, equation 8), from the two heads of a network; (N, A).

    A logit is read as points: the likeliest action is worth the value, and another as many points less as its logit is
    lower. So the policy's likeliest action is the best one, and the value is that of the position.

    Args:
        logits: (N, A), masked: very low where an action is illegal, which its value then is as well.
        values: (N,), units of reward.
        scale: Points that make one unit of reward.
    """
    return values.unsqueeze(1) + (logits - logits.amax(dim=1, keepdim=True)) / scale


def double_dqn_targets(
    returns: Tensor, factors: Tensor, online: Tensor, target: Tensor, mask: Tensor, low: float = -1e30
) -> Tensor:
    """Targets of double Q-learning (van Hasselt et al. 2016), (N,).

    The online network chooses among the actions that are legal in the next position, the target network says what that
    one is worth.

    Args:
        returns: (N,), rewards up to the next position.
        factors: (N,), what its value is multiplied with: the discount, with a minus where the other seat decides there,
            and 0 where nothing follows (the mask may be empty then).
        online: (N, A), values of the next position's actions by the network that learns.
        target: (N, A), the same by the target network.
        mask: (N, A), 1 for the actions that are legal in the next position.
        low: Less than any value.
    """
    legal = mask != 0
    best = online.masked_fill(~legal, low).argmax(dim=1, keepdim=True)
    value = target.gather(1, best).squeeze(1)
    return returns + torch.where(factors != 0, factors * value, 0.0)


def epsilon_greedy(values: Tensor, mask: Tensor, epsilon: float, temperature: float = 0.0) -> Tensor:
    """Probabilities (N, A): a random legal action with ``epsilon``, otherwise the best of the legal ones.

    Args:
        values: (N, A), of the actions; those that are equally good share.
        mask: (N, A), 1 for legal actions, at least one in each row.
        epsilon: 0 to 1.
        temperature: More than 0 lets actions that are nearly as good have a part: one that is worth so much less is
            e times rarer.
    """
    legal = mask != 0
    masked = values.masked_fill(~legal, -torch.inf)
    if temperature > 0:
        good = torch.softmax(masked / temperature, dim=1)
    else:
        best = masked == masked.amax(dim=1, keepdim=True)
        good = best / best.sum(dim=1, keepdim=True)
    return (1 - epsilon) * good + epsilon * legal / legal.sum(dim=1, keepdim=True)


def imitation_loss(log_probs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Mean cross-entropy in nats on a teacher's probabilities; a scalar.

    Args:
        log_probs: (N, A), of masked logits (finite everywhere).
        labels: (N, A), the teacher's probabilities.
        mask: (N, A), 1 for legal actions.
    """
    return -(log_probs.masked_fill(mask == 0, 0) * labels).sum(dim=1).mean()


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
