"""The chance to win a match from each score, and hands paid in it."""

import numpy as np

import agents
from agents.match import play_games
from gin_env._compile import kernel
from gin_env.rules import Rules
from gin_env.tables import NOBODY, Tables

# Deals whose points tell how hands end; fixed, so that rules have one table.
DEALS = 10_000
SEED = 5_000_011
PLAYER = "early-knock"


def hand_points(rules: Rules, deals: int = DEALS) -> np.ndarray:
    """Returns how often a hand is won with each number of points, by play of a scripted player against itself.

    Args:
        rules: What is played, one hand a game.
        deals: Deals, each played twice.

    Returns:
        (K,) float64, the share of scored hands by points, in all 1; the share of 0 points is 0.
    """
    won: list[np.ndarray] = []

    def ended(_: np.ndarray, tables: Tables) -> None:
        won.append(tables["points"][tables["winner"] != NOBODY].copy())

    player = agents.make(PLAYER)
    play_games(player, player, deals=deals, seed=SEED, rules=rules, ended=ended)
    counts = np.bincount(np.concatenate(won)).astype(np.float64)
    counts[0] = 0
    return counts / counts.sum()


def winning_chances(target: int, points: np.ndarray) -> np.ndarray:
    """Returns the chance to win a match from each score, for two players of one strength.

    From the top down: a hand goes to either side with equal chances and brings so many points with the given share.
    Who deals is left out, and so are hands without a score, for they are dealt again.

    Args:
        target: Points that win the match.
        points: (K,) share of the hands by their points, as `hand_points` gives them.

    Returns:
        (target + 1, target + 1) float64 by own and the opponent's score, the target standing for it or more.
    """
    chances = np.empty((target + 1, target + 1))
    _winning_chances(target, points, chances)
    return chances


@kernel
def _winning_chances(target, points, chances):
    chances[:, target] = 0.0
    chances[target, :] = 1.0
    # Both at the target cannot be; a half keeps the table a mirror image of itself.
    chances[target, target] = 0.5
    for total in range(2 * target - 2, -1, -1):
        for own in range(max(0, total - target + 1), min(target - 1, total) + 1):
            other = total - own
            chance = 0.0
            for k in range(1, points.size):
                chance += points[k] * (chances[min(own + k, target), other] + chances[own, min(other + k, target)])
            chances[own, other] = 0.5 * chance


@kernel
def _hand_values(chances, before, points, rows, out):
    target = chances.shape[0] - 1
    for k in range(rows.size):
        i = rows[k]
        for seat in range(2):
            own, other = before[k, seat], before[k, 1 - seat]
            after = chances[
                min(own + max(points[i, seat], 0), target), min(other + max(points[i, 1 - seat], 0), target)
            ]
            out[k, seat] = after - chances[min(own, target), min(other, target)]


def hand_values(chances: np.ndarray, before: np.ndarray, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Returns by how much a hand changed each seat's chance to win the match.

    Args:
        chances: As `winning_chances` gives them.
        before: (K, 2) scores before the hand.
        points: (N, 2) points that each seat won in it; negative for the loser, whose score stays.
        rows: (K,) rows of ``points``.

    Returns:
        (K, 2) float64, zero-sum.
    """
    out = np.empty((rows.size, 2))
    _hand_values(chances, np.ascontiguousarray(before), points, rows, out)
    return out
