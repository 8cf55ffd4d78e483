"""Luck that duplicate deals leave: what the stock gave to each side, measured and taken out of a match's result.

Whatever the players do, the next card of the stock is any of those left in it with the same probability. So the value
of the drawn card to whoever drew it, less the mean of that value over all cards still in the stock, is zero on average,
for any measure of value and any players. Sums of such differences are control variates: subtracting multiples of them
changes no expectation, and takes away the part of the variance that they explain. That is MIVAT (White and Bowling
2009, "Learning a value function analysis for agent evaluation"), the part of AIVAT (Burch et al. 2018) that needs to
know nothing of the players.

The multiples come from a ridge regression over the deals of the match itself. Those of a deal are fitted on other
deals (cross-fitting), so they do not depend on its luck, and the estimate stays unbiased.

The deal gives nothing to correct: each side plays both hands of it, so what is better about one of them cancels in the
sum, and how good both are together explains nothing (0.2 % of the variance, measured for greedy against early-knock).

    >>> import agents
    >>> from agents.match import play_match
    >>> from experiments.luck import Luck
    >>> luck = Luck("cardpuzzle", deals=500)
    >>> result = play_match(agents.make("greedy"), agents.make("gin-only"), deals=500, ended=luck.ended)
    >>> luck.reduce(result).variance_ratio < 1
    True
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agents.match import MatchResult
from agents.result import NORMAL_95
from gin_env._compile import kernel
from gin_env.actions import DRAW
from gin_env.dealing import start_hand
from gin_env.engine import play
from gin_env.melds import bit, least_after_discard, least_deadwood
from gin_env.rules import Rules, as_rules
from gin_env.tables import Tables, empty_tables

# What a drawn card is worth to its drawer, in several measures. "Left" is the least deadwood after the next throw.
VALUES = (
    ("left", "deadwood left, points"),
    ("gin", "1 if nothing is left"),
    ("may_knock", "1 if what is left lets it knock"),
    ("knock_lead", "if so, how much less it is than the opponent's deadwood, points"),
    ("gin_lead", "if nothing is left, the opponent's deadwood, points"),
)
NUM_VALUES = len(VALUES)
# Each of them also times the opponent's deadwood (the one that matters changes with it), for the draws of each side.
NUM_COLUMNS = 2 * 2 * NUM_VALUES
FOLDS = 10
# Deals whose weight pulls the coefficients to zero. Without it a value that is rarely above zero did harm in matches of
# a thousand deals; with it matches of 200 gained 5 to 10 % (gin-only, early-knock and random against greedy).
RIDGE = 10
# With fewer deals the coefficients cost more than they save.
MIN_DEALS = 200


@kernel
def write_values(hand, card, limit, opponent, out):
    """Writes the `VALUES` of a card to the hand of ten that draws it; ``opponent`` is the other's deadwood."""
    left = least_after_discard(hand | bit(card), -1)
    out[0] = left
    out[1] = left == 0
    out[2] = left <= limit
    out[3] = opponent - left if left <= limit else 0
    out[4] = opponent if left == 0 else 0


@kernel
def _draw_luck(tables, numbers, work, values, out):
    """Adds the luck of every draw of some hands to ``out`` (games, 2 sides, 2, NUM_VALUES), by the games' numbers."""
    t = work[0]
    for i in range(tables.size):
        played = tables[i]
        t.rules = played.rules
        t.to_target = False
        for place in range(played.rules.deck_size):
            t.deck[place] = played.deck[place]
        start_hand(t, np.int64(played.dealer))
        for move in range(played.num_moves):
            action = np.int64(played.moves[move])
            if action == DRAW:
                drawer = np.int64(t.mover)
                side = drawer ^ (numbers[i] % 2)  # a's seat is the parity of the game's number
                opponent = least_deadwood(t.hands[1 - drawer])
                left = np.int64(t.rules.deck_size) - t.stock_at
                for place in range(t.stock_at, t.rules.deck_size):
                    write_values(t.hands[drawer], np.int64(t.deck[place]), np.int64(t.limit), opponent, values)
                    weight = (1.0 if place == t.stock_at else 0.0) - 1.0 / left
                    for k in range(NUM_VALUES):
                        out[numbers[i], side, 0, k] += weight * values[k]
                        out[numbers[i], side, 1, k] += weight * values[k] * opponent
            play(t, action)


@dataclass(frozen=True)
class Reduced:
    """A match's result with the luck of the draws taken out, from side a's point of view.

    Attributes:
        points_per_hand: Points that a wins per hand; it estimates the same as the plain mean.
        ci95: Interval of 95 % confidence, by the normal approximation over deals.
        variance_ratio: Variance of this estimate, of the plain one's: 0.8 means that the plain one needs 1 / 0.8 times
            as many hands for the same interval.
        hands_saved: Hands that the plain estimate would need on top of those played for the same interval; negative
            where it needs fewer.
    """

    points_per_hand: float
    ci95: tuple[float, float]
    variance_ratio: float
    hands_saved: int

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain values."""
        return asdict(self) | {"ci95": list(self.ci95)}


class Luck:
    """Measures the luck of a match's hands as they end.

    Args:
        rules: What is played.
        deals: Number of deals.
        first: Number of the first deal.

    Attributes:
        columns: (deals, 2, NUM_COLUMNS) float64, for both games of each deal sums of differences that are zero on
            average: a's draws before b's, the `VALUES` before those times the opponent's deadwood.
        hands: (deals, 2) int64, hands that have ended in each game.
    """

    def __init__(self, rules: Rules | str, deals: int, first: int = 0) -> None:
        self.first = first
        self.columns = np.zeros((deals, 2, NUM_COLUMNS))
        self.hands = np.zeros((deals, 2), dtype=np.int64)
        self._sums = self.columns.reshape(2 * deals, 2, 2, NUM_VALUES)  # the same memory
        self._rules = as_rules(rules)

    @classmethod
    def of_match(cls, rules: Rules | str, deals: int) -> "Luck":
        """Returns what measures a whole match.

        Raises:
            ValueError: If it has too few deals for `reduce`.
        """
        if deals < MIN_DEALS:
            raise ValueError(f"deals is {deals}; taking the luck out needs at least {MIN_DEALS}")
        return cls(rules, deals)

    def ended(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters hands that have ended, as `agents.match.play_games` tells of them."""
        rows = numbers - 2 * self.first
        self.hands.reshape(-1)[rows] += 1
        _draw_luck(tables, rows, empty_tables(self._rules, 1), np.zeros(NUM_VALUES), self._sums)

    def put(self, part: "Luck") -> None:
        """Takes over some of the deals from another measurement."""
        rows = slice(part.first - self.first, part.first - self.first + part.hands.shape[0])
        self.columns[rows], self.hands[rows] = part.columns, part.hands

    def reduce(self, result: MatchResult) -> Reduced:
        """Returns the result of a match with the luck taken out.

        Args:
            result: Of all the deals measured.

        Raises:
            ValueError: If there are fewer than `MIN_DEALS`; or if a game was forfeited: its draws were not entered, and
                which game is forfeited may depend on them.
        """
        if result.deals < MIN_DEALS:
            raise ValueError(f"deals is {result.deals}; taking the luck out needs at least {MIN_DEALS}")
        if any(result.forfeits):
            raise ValueError("games were forfeited: their luck is not known, and that of the others is biased")
        points = result.games.sum(axis=1, dtype=np.float64)
        hands = self.hands.sum(axis=1, dtype=np.float64)
        _, plain = _ratio(points, hands)
        mean, error = _ratio(points - _explained(points, hands, self.columns.sum(axis=1)), hands)
        ratio = (error / plain) ** 2 if plain else 1.0
        return Reduced(
            points_per_hand=mean,
            ci95=(mean - NORMAL_95 * error, mean + NORMAL_95 * error),
            variance_ratio=ratio,
            hands_saved=round(hands.sum() * (1 / ratio - 1)) if ratio else 0,
        )


def _explained(points: np.ndarray, hands: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Returns the part of each deal's points that the columns explain, with coefficients from the other folds."""
    explained = np.zeros(points.size)
    scale = columns.std(axis=0)
    columns = columns / np.where(scale > 0, scale, 1)
    folds = np.arange(points.size) % FOLDS
    for fold in range(FOLDS):
        known, here = folds != fold, folds == fold
        centred = columns[known] - columns[known].mean(axis=0)
        rest = points[known] - points[known].sum() / hands[known].sum() * hands[known]
        squares = centred.T @ centred + RIDGE * np.eye(columns.shape[1])
        explained[here] = columns[here] @ np.linalg.solve(squares, centred.T @ rest)
    return explained


def _ratio(points: np.ndarray, hands: np.ndarray) -> tuple[float, float]:
    """Returns points per hand and its standard error over deals, as `agents.result.pair_interval` does."""
    mean = float(points.sum() / hands.sum())
    spread = float(((points - mean * hands) ** 2).sum()) * points.size / (points.size - 1)
    return mean, math.sqrt(spread) / float(hands.sum())


def luck_line(result: MatchResult, reduced: Reduced) -> str:
    """Says in one sentence what is left of a match's result without the luck of the draws."""
    low, high = reduced.ci95
    digits = 1 if high - low >= 0.2 else 2
    saved = 1 / reduced.variance_ratio - 1 if reduced.variance_ratio else 0.0
    worth = f"worth {abs(saved):.0%} {'more' if saved >= 0 else 'fewer'} deals"
    return (
        f"without the luck of the draws: {reduced.points_per_hand:+z.{digits}f} points a hand for {result.a} "
        f"(95 % interval {low:+z.{digits}f} to {high:+z.{digits}f}), {worth}"
    )
