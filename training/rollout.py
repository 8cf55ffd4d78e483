"""Rollouts: the learner's decisions at all tables, step by step, with what each of them won."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from agents.games import GIN, Game
from agents.networks import HIDDEN_SIZE
from agents.playouts import play_out
from gin_env._compile import borrow_row, kernel, write_cards
from gin_env.cards import NUM_CARDS
from gin_env.keys import mix, mix_keys
from gin_env.melds import least_deadwood
from gin_env.rules import Rules
from gin_env.tables import TABLE_DTYPE, Tables
from training.advantages import CUT_ENDED, CUT_NONE, CUT_TRUNCATED
from training.chances import hand_points, hand_values, winning_chances
from training.opponents import Opponents

# Observations (N, D), masks (N, A) and hidden cards (N, H) to logits (N, A) and values (N,), float32.
Policy = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

# The draws during which the mover and the other player knock in the play-outs of `hidden_cards`; later they only go
# gin. One that waits for gin against one that knocks at once, two that knock early, and the first the other way round:
# all nine such pairs tell hardly more about the end of a hand.
STYLES = np.array([[0, 100], [5, 5], [100, 0]])

MAX_MOVES_AHEAD = 10_000  # opponents' moves between two decisions of the learner; far more than rules allow


class Batch(NamedTuple):
    """T decisions at each of N tables, of a game with S seats, A actions and D numbers in an observation."""

    observations: np.ndarray  # (T, N, D) float32
    masks: np.ndarray  # (T, N, A) int8
    actions: np.ndarray  # (T, N) int64
    log_probs: np.ndarray  # (T, N) float32, of the actions when they were taken
    values: np.ndarray  # (T, N) float32, as the policy saw them
    seats: np.ndarray  # (T, N) int8, who decided
    rewards: np.ndarray  # (T, N) float32, units of reward that it won before the table's next decision
    won: np.ndarray  # (T, N, S) float32, units of reward that each seat won before it
    cuts: np.ndarray  # (T, N) int8, see training.advantages
    last_values: np.ndarray  # (N,) float32, of the decision after the last
    last_seats: np.ndarray  # (N,) int8
    hidden: np.ndarray  # (T, N, H) float32, what the mover does not see (`hidden_cards`); of size 0 if not asked for


@kernel
def _sample(logits, mask, rng, actions, log_probs):
    for i in range(logits.shape[0]):
        top = np.float32(-1e30)
        for a in range(logits.shape[1]):
            if mask[i, a]:
                top = max(top, logits[i, a])
        total = 0.0
        for a in range(logits.shape[1]):
            if mask[i, a]:
                total += np.exp(np.float64(logits[i, a] - top))
        place = np.float64(mix(rng[i], np.uint64(0)) >> np.uint64(11)) * 2.0**-53 * total
        chosen = -1
        for a in range(logits.shape[1]):
            if mask[i, a]:
                chosen = a
                place -= np.exp(np.float64(logits[i, a] - top))
                if place < 0:
                    break
        actions[i] = chosen
        log_probs[i] = np.float64(logits[i, chosen] - top) - np.log(total)


def sample(logits: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draws one legal action for each row from the softmax of its legal logits.

    Args:
        logits: (N, A) float32.
        mask: (N, A) int8, at least one 1 in each row.
        rng: (N,) uint64, random keys.

    Returns:
        Actions (N,) int64 and their log-probabilities (N,) float32.

    Raises:
        ValueError: If a row has no legal action.
    """
    actions = np.empty(logits.shape[0], dtype=np.int64)
    log_probs = np.empty(logits.shape[0], dtype=np.float32)
    _sample(logits, mask, rng, actions, log_probs)
    if actions.min(initial=0) < 0:
        raise ValueError(f"row {int(actions.argmin())} has no legal action: nobody is to move there")
    return actions, log_probs


@kernel
def _hidden(t, out):
    for i in range(t.size):
        row = borrow_row(out, i)
        write_cards(row, 0, t[i].hands[1 - t[i].mover])
        for k in range(NUM_CARDS, 2 * NUM_CARDS):
            row[k] = np.float32(0)
        for place in range(t[i].stock_at, t[i].rules.deck_size):
            row[NUM_CARDS + t[i].deck[place]] = np.float32(1) - np.float32(place - t[i].stock_at) / np.float32(32)


@kernel
def _outlooks(t, scratch, out):
    for i in range(t.size):
        seat = np.int64(t[i].mover)
        for k in range(STYLES.shape[0]):
            scratch[0] = t[i]
            out[i, HIDDEN_SIZE + k] = np.float32(play_out(scratch[0], seat, STYLES[k, 0], STYLES[k, 1]) / 20)
        out[i, HIDDEN_SIZE + STYLES.shape[0]] = np.float32(least_deadwood(t[i].hands[1 - seat]) / 10)


def hidden_cards(tables: Tables, out: np.ndarray) -> None:
    """Writes what the mover does not see.

    Args:
        tables: N tables with automatic rules at a decision.
        out: (N, HIDDEN_SIZE) float32, written: the opponent's hand, and the stock, 1 for its top card and less for
            those below. With CRITIC_SIZE columns also what `agents.networks.Critic` is told: the points that the mover
            would win between simple players who finish the hand with the cards as they lie, of 20, for each pair of
            `STYLES`; and the opponent's deadwood, of 10.
    """
    _hidden(tables, out)
    if out.shape[1] > HIDDEN_SIZE:
        _outlooks(tables, np.zeros(1, dtype=TABLE_DTYPE), out)


class Collector:
    """Plays the learner, on all seats or against opponents, and keeps what an update needs.

    Args:
        rules: What is played, one hand an episode: rules of the game.
        tables: Number of tables, N.
        horizon: Decisions of the learner at each table in a batch, T; 0 for whoever only calls `Collector.advance`.
        shares: Share of the tables for each opponent (see `training.opponents`).
        seed: Decides deals, samples and the opponents' keys, each from a stream of its own.
        points_scale: Points that make one unit of reward.
        matches: Share of the tables that play whole matches. There a hand is paid by the change in the chance to win,
            at the rate that a point has on average in the first hand; it still is an episode of its own.
        match_rules: What those play.
        past_size: Most past states among the opponents.
        hidden: How much to keep of what the mover does not see: nothing, HIDDEN_SIZE or CRITIC_SIZE numbers of
            `hidden_cards`.
        game: Whose engine and players these are.

    Attributes:
        tables: The tables, always at a decision of the learner between two batches.
    """

    def __init__(
        self,
        rules: Any,
        tables: int,
        horizon: int,
        shares: Mapping[str, float],
        seed: int,
        points_scale: float,
        *,
        matches: float = 0.0,
        match_rules: Rules | None = None,
        past_size: int = 1,
        hidden: int = 0,
        game: Game = GIN,
    ) -> None:
        self.game = game
        engine = game.engine
        streams = mix_keys(seed, np.arange(3))
        self.first_match = tables - round(matches * tables)
        self.tables = engine.new_tables(rules, tables, seed=int(streams[0]))
        if self.first_match < tables:
            if match_rules is None or match_rules.target is None:
                raise ValueError("matches need rules with a target")
            number = tables - self.first_match
            self.tables[self.first_match :] = engine.new_tables(
                match_rules, number, seed=int(streams[0]), first=self.first_match, match=True
            )
            points = hand_points(match_rules)
            self.chances = winning_chances(match_rules.target, points)
            # A point of the first hand, as a chance to win.
            low = self.chances[np.minimum(np.arange(points.size), match_rules.target), 0]
            self.chance_scale = float((points * np.arange(points.size)).sum() / (points * (low - 0.5)).sum())
        self.sample_seed = int(streams[1])
        groups = (self.first_match, tables - self.first_match)
        self.opponents = Opponents(shares, groups, seed=int(streams[2]), past_size=past_size, game=game)
        self.points_scale = points_scale
        self.endings: Counter[str] = Counter()
        self.hand_points: list[np.ndarray] = []
        self.hand_turns: list[np.ndarray] = []
        size, num_actions, seats = game.observation_size(rules), game.num_actions(rules), game.seats(rules)
        # Two, since one may be played while the other is learned from; they take their memory when they are first used.
        self._batches = [
            Batch(
                observations=np.empty((horizon, tables, size), dtype=np.float32),
                masks=np.empty((horizon, tables, num_actions), dtype=np.int8),
                actions=np.empty((horizon, tables), dtype=np.int64),
                log_probs=np.empty((horizon, tables), dtype=np.float32),
                values=np.empty((horizon, tables), dtype=np.float32),
                seats=np.empty((horizon, tables), dtype=np.int8),
                rewards=np.empty((horizon, tables), dtype=np.float32),
                won=np.empty((horizon, tables, seats), dtype=np.float32),
                cuts=np.empty((horizon, tables), dtype=np.int8),
                last_values=np.empty(tables, dtype=np.float32),
                last_seats=np.empty(tables, dtype=np.int8),
                hidden=np.empty((horizon, tables, hidden), dtype=np.float32),
            )
            for _ in range(2)
        ]
        self._next = (
            np.empty((tables, size), dtype=np.float32),
            np.empty((tables, num_actions), dtype=np.int8),
        )
        self._next_hidden = np.empty((tables, hidden), dtype=np.float32)
        self._won = np.zeros((tables, seats), dtype=np.float32)
        self._started = False
        if not self.opponents.need_past:
            self.start()

    def start(self) -> None:
        """Lets the opponents move until the learner is to move at every table, once all of them are there."""
        if self._started:
            return
        # Before the learner's first decision nothing is owed to it: as if a hand had just ended everywhere.
        tables = self.tables.size
        self._move_opponents(np.zeros_like(self._won), np.full(tables, CUT_ENDED, dtype=np.int8))
        self._started = True

    def collect(self, policy: Policy, place: int = 0) -> Batch:
        """Plays T decisions of the learner at each table.

        Args:
            policy: What the learner plays.
            place: 0 or 1, where the batch is kept. The next one for the same place overwrites its arrays.
        """
        self.start()
        batch = self._batches[place]
        for t in range(batch.actions.shape[0]):
            self.game.view.look(self.tables, None, batch.observations[t], batch.masks[t])
            if batch.hidden.size:
                hidden_cards(self.tables, batch.hidden[t])
            logits, batch.values[t] = policy(batch.observations[t], batch.masks[t], batch.hidden[t])
            keys = self.game.engine.decision_keys(self.sample_seed, self.tables)
            batch.actions[t], batch.log_probs[t] = sample(logits, batch.masks[t], keys)
            batch.seats[t] = self.tables["mover"]
            self.advance(batch.actions[t], batch.seats[t], batch.rewards[t], batch.cuts[t], batch.won[t])
        self.game.view.look(self.tables, None, *self._next)
        if batch.hidden.size:
            hidden_cards(self.tables, self._next_hidden)
        _, batch.last_values[:] = policy(*self._next, self._next_hidden)
        batch.last_seats[:] = self.tables["mover"]
        return batch

    def advance(
        self,
        actions: np.ndarray,
        seats: np.ndarray,
        rewards: np.ndarray,
        cuts: np.ndarray,
        won: np.ndarray | None = None,
    ) -> None:
        """Plays one action of the learner at each table, then the opponents until it is to move again at all of them.

        Args:
            actions: (N,) int64.
            seats: (N,) int8, who plays them.
            rewards: (N,) float32, written: units of reward that those seats won before the learner's next decisions.
            cuts: (N,) int8, written: see training.advantages.
            won: (N, S) float32, written if given: units of reward that each seat won before them.
        """
        won = self._won if won is None else won
        won[:] = 0
        cuts[:] = CUT_NONE
        self._step(actions, won, cuts)
        self._move_opponents(won, cuts)
        rewards[:] = won[np.arange(seats.size), seats]

    def _step(self, actions: np.ndarray, won: np.ndarray, cuts: np.ndarray) -> None:
        """Plays one action at each table (or none) and books ended hands to the decisions before."""
        truncated, endings = self.game.tables.TRUNCATED, self.game.tables.ENDINGS
        scores = self.tables["scores"][self.first_match :].copy()
        points, over = self.game.engine.step(self.tables, actions, redeal=True)
        rows = np.flatnonzero(over)
        if not rows.size:
            return
        # A hand in which the learner did not decide anything is owed to no decision.
        owed = rows[cuts[rows] == CUT_NONE]
        won[owed] = points[owed] / self.points_scale
        in_match = owed[owed >= self.first_match]
        if in_match.size:
            values = hand_values(self.chances, scores[in_match - self.first_match], points, in_match)
            won[in_match] = values * (self.chance_scale / self.points_scale)
        cuts[owed] = np.where(self.tables["ending"][owed] == truncated, CUT_TRUNCATED, CUT_ENDED)
        for ending, number in zip(*np.unique(self.tables["ending"][rows], return_counts=True), strict=True):
            self.endings[endings[ending]] += int(number)
        self.hand_points.append(points[rows].max(axis=1))
        self.hand_turns.append(self.tables["num_turns"][rows])

    def _move_opponents(self, won: np.ndarray, cuts: np.ndarray) -> None:
        """Plays the opponents until the learner is to move at every table."""
        for _ in range(MAX_MOVES_AHEAD):
            rows = self.opponents.waiting(self.tables)
            if not rows.size:
                return
            actions = self.opponents.act(self.tables, rows)
            self._step(actions, won, cuts)
        raise RuntimeError(f"the opponents moved {MAX_MOVES_AHEAD} times and the learner still is not to move")

    def statistics(self) -> dict[str, float]:
        """Returns rates over the hands that ended since the last call, and forgets them."""
        hands = sum(self.endings.values())
        if not hands:
            return {}
        rates = {
            f"{ending.replace('-', '_')}_rate": self.endings[ending] / hands for ending in self.game.tables.ENDINGS[1:]
        }
        rates["points"] = float(np.concatenate(self.hand_points).mean())
        rates["turns"] = float(np.concatenate(self.hand_turns).mean())
        rates["hands"] = float(hands)
        self.endings.clear()
        self.hand_points.clear()
        self.hand_turns.clear()
        return rates
