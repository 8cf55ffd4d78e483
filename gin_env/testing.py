"""Conformance checks for house rules and for players, as library code: they need no test framework.

`check_rules` plays random hands under some rules and looks at every step whether the game holds together. `check_agent`
plays an agent and looks whether it keeps to its protocol. Both raise `ConformanceError`, whose message says what is
wrong, at which table, and which call shows it again.

    >>> from gin_env.testing import check_agent, check_rules
    >>> check_rules("plus20:knock_limit=7,target=50", hands=50).hands >= 50
    True

    >>> import numpy as np
    >>> class Lowest:
    ...     name = "lowest"
    ...     def act(self, view, mask, rng):
    ...         return mask.argmax(axis=1)
    >>> check_agent(Lowest(), rules="plus20", hands=20).hands >= 20
    True

In a test suite one line for each of one's rules and agents is enough:

    def test_my_rules():
        check_rules(Rules(name="mine", knock_limit=7))

    def test_my_agent():
        check_agent(MyAgent(), rules="cardpuzzle", manual=False)

Everything is decided by the seed, so a failure comes again.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

from gin_env import engine, melds, view
from gin_env.actions import (
    BIG_GIN,
    DISCARD,
    DRAW,
    KNOCK,
    LAYOFF,
    MAX_MELDS,
    MELD,
    MELDS,
    NUM_MANUAL_ACTIONS,
    PASS,
    TAKE,
    action_name,
)
from gin_env.cards import CARD_POINTS, NO_CARD, NUM_CARDS, NUM_RANKS, cards_text, from_mask
from gin_env.engine import EPISODE_ENDED, GOING_ON, HAND_ENDED, NO_ACTION, IllegalAction
from gin_env.record import RecordError, table_record
from gin_env.rules import Rules, as_rules
from gin_env.spaces import observation_space
from gin_env.tables import (
    BIG_GINNED,
    DEAD,
    DECLARE,
    DEFEND,
    DRAW_ANY,
    DRAW_STOCK,
    ENDINGS,
    GINNED,
    KNOCKED,
    LAY_OFF,
    MAX_MOVES,
    NOBODY,
    OFFER,
    OFFER_DEALER,
    OVER,
    PHASES,
    THROW,
    TIED,
    TRUNCATED,
    UNDERCUT,
    WALL,
    WALL_THROW,
    Tables,
)
from gin_env.view import View

__all__ = ["ConformanceError", "Report", "check_agent", "check_rules"]

_U1 = np.uint64(1)
# Streams of a seed for choices, apart from the deals' and from one another.
_PLAY_STREAM, _STYLE_STREAM, _AGENT_STREAM = (1 << 62) + 1, (1 << 62) + 2, (1 << 62) + 3
# Every so many steps the checks that play a position several times over.
_SAMPLE_EVERY = 4
_REFUSALS = 20  # actions that are tried at one table
_BATCH_STEPS = 100  # of the check that the batch size changes nothing
_STRAYS = 0.3  # share of the moves in a check of an agent that are not its own
_CARDS = np.arange(NUM_CARDS)


class ConformanceError(AssertionError):
    """A check has failed.

    Attributes:
        check: Name of the check, such as "cards" or "illegal actions".
        problem: What is wrong.
        reproduce: A call that shows it again.
        position: The table and its record, which `gin_env.engine.replay` plays; empty where it is no single table.
    """

    def __init__(self, check: str, problem: str, reproduce: str, position: str = "") -> None:
        """Composes the message; ``position`` tells how the table came to where it is."""
        self.check, self.problem, self.reproduce, self.position = check, problem, reproduce, position
        parts = [f"{check}: {problem}", *([position] if position else []), f"reproduce with: {reproduce}"]
        super().__init__("\n".join(parts))

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        """Pickles what was found, for errors that cross to another process."""
        return type(self), (self.check, self.problem, self.reproduce, self.position)


class Report(NamedTuple):
    """What a check has seen when nothing was wrong."""

    hands: int  # that ended
    decisions: int
    phases: Counter[str]  # decisions in each phase (gin_env.tables.PHASES)
    endings: Counter[str]  # hands by their ending (gin_env.tables.ENDINGS)

    def __add__(self, other: "Report") -> "Report":  # type: ignore[override]
        """Both together."""
        return Report(
            self.hands + other.hands,
            self.decisions + other.decisions,
            self.phases + other.phases,
            self.endings + other.endings,
        )


class Player(Protocol):
    """What `check_agent` checks: an agent, as `agents.base.Agent` describes it."""

    name: str

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """Chooses one action for each row."""
        ...


def check_rules(rules: Rules | str, *, hands: int = 500, seed: int = 0, tables: int = 64) -> Report:
    """Plays random hands under some rules and checks at every step that the game holds together.

    Half of the hands are episodes of their own, the others belong to matches. The choices range from uniform to careful
    play with melds, so that hands end in all ways. What is checked:

    - cards: hands, pile and stock are the pack; hands have their size; what is laid down lies in its hand;
    - moves: somebody has a legal action until the hand is over; a step moves what it should and nothing else, the turn
      passes as the rules say, and no hand is longer than they allow;
    - actions: the mask is what the rules say and what is accepted; an illegal action raises and changes nothing;
    - views: what a seat cannot see changes nothing in its view, observation and mask; observations lie in their space;
    - results: melds and layoffs are valid, deadwood and points follow from them, points sum to zero;
    - deals: dealer, limit, scores and the ends of matches;
    - batches: a table plays the same alone, among others, in another place, from a copy, from its record.

    Args:
        rules: Rules, or text as for `gin_env.rules.as_rules`.
        hands: Hands to play; some more may end.
        seed: Decides deals and choices.
        tables: Tables at once.

    Raises:
        ConformanceError: If a check fails.
        ValueError: If an argument is out of range.
    """
    rules = as_rules(rules)
    _check_positive(hands=hands, tables=tables)
    reproduce = f"check_rules({rules.text!r}, hands={hands}, seed={seed}, tables={tables})"
    report = Report(0, 0, Counter(), Counter())
    for match in (False, True):
        run = _RulesRun(rules, match, seed, min(tables, max(hands // 2, 1)), reproduce)
        report += run.play(hands - hands // 2 if match else hands // 2)
        run.check_batches()
    return report


def check_agent(
    agent: Player,
    rules: Rules | str = "cardpuzzle",
    *,
    manual: bool = True,
    hands: int = 200,
    seed: int = 0,
    tables: int = 64,
) -> Report:
    """Plays an agent and checks that it keeps to the protocol of agents.

    It plays both seats, and a part of the moves is random, so that it also sees positions it would not come to by
    itself. What is checked in each batch of decisions:

    - legal: one integer for each row, a legal action;
    - inputs: view, mask and random keys are left as they were;
    - keys: the same choice when asked again with the same keys;
    - batches: the same choice in another order of rows, in a part of the batch and for a row alone;
    - hidden: the same choice when the cards that its seat cannot see lie elsewhere.

    Args:
        agent: The agent.
        rules: Rules, or text as for `gin_env.rules.as_rules`.
        manual: Whether the agent also has to play these rules with melds and layoffs by hand and with a knock at the
            wall, so that it comes to every phase. False is for agents that know automatic rules only.
        hands: Hands to play under each.
        seed: Decides deals, random moves and the agent's keys.
        tables: Tables at once.

    Raises:
        ConformanceError: If a check fails.
        ValueError: If an argument is out of range.
    """
    rules = as_rules(rules)
    _check_positive(hands=hands, tables=tables)
    played = [rules]
    if manual:
        by_hand = {"knocker_melds": "manual", "layoffs": "manual", "defender_melds": "manual", "wall": "knock"}
        played.append(Rules.from_dict(rules.to_dict() | by_hand))
    report = Report(0, 0, Counter(), Counter())
    for one in dict.fromkeys(played):
        reproduce = f"check_agent(agent, {one.text!r}, manual=False, hands={hands}, seed={seed}, tables={tables})"
        report += _AgentRun(agent, one, seed, min(tables, hands), reproduce).play(hands)
    return report


def _check_positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} is {number}; expected at least 1")


# ------------------------------------------------------------------------------------------------------- random play


class _Style(NamedTuple):
    """How a seat plays a hand: log-weights of actions."""

    take: float = 0.0  # of the upcard
    swap: float = 0.0  # of throwing back the card just taken
    knock: float = 0.0
    points: float = 0.0  # for each point of deadwood that a throw leaves
    gin: float = 0.0  # for knocking with nothing left, and big gin
    stop: float = 0.0  # of passing in the showdown


# Uniform, keeping melds (the most common), knocking at once, swapping, drawing, taking, waiting for gin, careless.
_KEEPS = _Style(swap=-2.0, knock=1.0, points=-0.5, gin=1.0, stop=-2.0)
_STYLES = np.array(
    [
        _Style(),
        _KEEPS,
        _KEEPS,
        _KEEPS,
        _KEEPS,
        _Style(swap=-9.0, knock=50.0, points=-2.0, stop=-4.0),
        _Style(swap=-9.0, knock=50.0, points=-2.0, stop=-4.0),
        _Style(take=2.0, swap=3.0, knock=-1.0, points=-0.1, stop=-1.0),
        _Style(take=-50.0, knock=-50.0, points=-1.0, stop=-2.0),
        _Style(take=50.0, swap=-50.0, knock=-50.0, points=-0.05),
        _Style(swap=-50.0, knock=-50.0, points=-2.0, gin=60.0, stop=-4.0),
        _Style(swap=-1.0, knock=50.0, points=-0.3, stop=1.0),
    ]
)


def _stream_seed(seed: int, stream: int) -> int:
    return int(engine.mix_keys(seed, np.array([stream], dtype=np.uint64))[0])


def _choose(tables: Tables, mask: np.ndarray, seed: int) -> np.ndarray:
    """Returns a legal action of each table, NO_ACTION where the hand is over.

    The choice is a pure function of the seed, the table's key, its hand and the moves played, so it is the same
    whatever other tables there are.
    """
    rows, actions = np.nonzero(mask)
    chosen = np.full(tables.size, NO_ACTION)
    if not rows.size:
        return chosen
    # Each seat draws a style for the hand; half of the hands are played in one style by both.
    hand_keys = engine.mix_keys(
        _stream_seed(seed, _STYLE_STREAM), tables["key"] + tables["hand_number"].astype(np.uint64)
    )
    own = (hand_keys >> np.uint64(8)) % np.uint64(len(_STYLES))
    others = (hand_keys >> np.uint64(24)) % np.uint64(len(_STYLES))
    apart = (hand_keys & _U1).astype(bool) & (tables["mover"] == 1)
    take, swap, knock, points, gin, stop = _STYLES[np.where(apart, others, own).astype(np.int64)].T

    phase = tables["phase"]
    throws = (phase == THROW) | (phase == WALL_THROW)
    hands = tables["hands"][np.arange(tables.size), np.clip(tables["mover"], 0, 1)]
    left = melds.deadwood_after(np.where(throws, hands, np.uint64(0)))
    keys = engine.decision_keys(_stream_seed(seed, _PLAY_STREAM), tables)
    noise = engine.mix_keys(0, keys[rows] + actions.astype(np.uint64))
    uniform = (noise >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    weight = -np.log(-np.log(uniform))

    discards = (actions >= DISCARD) & (actions < KNOCK)
    knocks = (actions >= KNOCK) & (actions < BIG_GIN)
    at = rows[discards]
    card = actions[discards] - DISCARD
    weight[discards] += points[at] * left[at, card] + swap[at] * (card == tables["taken"][at])
    at = rows[knocks]
    leaves = left[at, actions[knocks] - KNOCK]
    weight[knocks] += points[at] * leaves + knock[at] + gin[at] * (leaves == 0)
    weight += np.where(actions == BIG_GIN, gin[rows], 0.0)
    # At the wall nearly whoever can knocks.
    weight += np.where(actions == TAKE, np.where(phase[rows] == WALL, 3.0, take[rows]), 0.0)
    weight += np.where((actions == PASS) & (phase[rows] >= DECLARE), stop[rows], 0.0)

    first = np.flatnonzero(np.diff(rows, prepend=-1))
    best = np.maximum.reduceat(weight, first)
    winners = np.flatnonzero(weight == np.repeat(best, np.diff(first, append=rows.size)))
    # Two equal weights are all but impossible; the last one would count.
    chosen[rows[winners]] = actions[winners]
    return chosen


def _shuffle_hidden(tables: Tables, seats: np.ndarray, rng: np.random.Generator) -> Tables:
    """Returns the tables with the cards that one seat of each has not seen in other places, and other deals to come."""
    shuffled = _copy(tables)
    rows, others = np.arange(tables.size), 1 - seats
    hands = tables["hands"][rows, others]
    shown = tables["phase"] == OVER
    unseen = np.where(shown, np.uint64(0), hands & ~tables["known"][rows, others])
    hidden = _bits(unseen)
    row, place = np.nonzero((tables["stock_at"][:, None] <= _CARDS) & (tables["deck"] != NO_CARD))
    hidden[row, tables["deck"][row, place]] = True

    # Each hidden card becomes another one of them. The others stay: sorted stably, they come last in both orders.
    card = np.argsort(np.where(hidden, _CARDS, NUM_CARDS), axis=1, kind="stable")
    becomes = np.argsort(np.where(hidden, rng.random(hidden.shape), 2.0), axis=1, kind="stable")
    moved = np.empty_like(card)
    np.put_along_axis(moved, card, becomes, axis=1)

    held = np.zeros_like(hidden)
    row, card_held = np.nonzero(_bits(unseen))
    held[row, moved[row, card_held]] = True
    new = (held.astype(np.uint64) << _CARDS.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    shuffled["hands"][rows, others] = (hands & ~unseen) | new
    deck = tables["deck"]
    shuffled["deck"] = np.where(deck == NO_CARD, deck, np.take_along_axis(moved, np.maximum(deck, 0), axis=1))
    # A card that the seat itself drew does not move: it is no hidden one.
    drawn = tables["drawn"]
    shuffled["drawn"] = np.where(drawn == NO_CARD, drawn, moved[rows, np.maximum(drawn, 0)])
    shuffled["key"] = rng.integers(0, 1 << 63, size=tables.size, dtype=np.uint64)
    return shuffled


def _bits(masks: np.ndarray) -> np.ndarray:
    """Returns sets of cards (N,) as (N, 52) booleans."""
    return (masks[:, None] >> _CARDS.astype(np.uint64) & _U1).astype(bool)


def _copy(tables: Tables) -> Tables:
    """Returns a copy, bytes between the fields included, so that two can be compared at once."""
    return tables.take(np.arange(tables.size))


def _observe(tables: Tables, seats: np.ndarray | int) -> View:
    """Returns the views of some seats, with zeros between the fields."""
    return view.observe(tables, seats, np.zeros(tables.size, dtype=view.VIEW_DTYPE))


def _in_place(cards: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Returns the sets (N,) of those of the cards (N, K) that are there."""
    bits = _U1 << np.where(there, cards, 0).astype(np.uint64)
    return np.bitwise_or.reduce(np.where(there, bits, np.uint64(0)), axis=1)


def _difference(left: np.ndarray, right: np.ndarray) -> tuple[str, int] | None:
    """Returns the first field in which two arrays of records differ, and the row; None where they are equal."""
    if left.shape != right.shape:
        return "size", 0
    if left.tobytes() == right.tobytes():
        return None
    for name in left.dtype.names or ():
        same = (left[name] == right[name]).reshape(left.size, -1).all(axis=1)
        if not same.all():
            return name, int(np.argmin(same))
    return None  # only the unused bytes between fields


# -------------------------------------------------------------------------------------------------------- both checks


class _Run:
    """Tables that are played from deal to deal, and how to tell where something went wrong.

    Args:
        rules: What is played.
        match: Whether hands belong to matches.
        seed: Of deals and choices.
        size: Number of tables.
        reproduce: A call that plays all this again.
    """

    def __init__(self, rules: Rules, match: bool, seed: int, size: int, reproduce: str) -> None:
        self.rules, self.match, self.seed, self.reproduce = rules, match, seed, reproduce
        self.tables = engine.new_tables(rules, size, seed=seed, match=match)
        self.rng = np.random.default_rng([seed, match])
        self.hands = self.decisions = self.turn = 0
        self.phases = np.zeros(len(PHASES), dtype=np.int64)
        self.endings = np.zeros(len(ENDINGS), dtype=np.int64)

    def play(self, hands: int) -> Report:
        """Plays until so many hands have ended."""
        while self.hands < hands:
            self.step()
            self.turn += 1
        return Report(
            self.hands,
            self.decisions,
            Counter({PHASES[phase]: int(self.phases[phase]) for phase in np.flatnonzero(self.phases)}),
            Counter({ENDINGS[ending]: int(self.endings[ending]) for ending in np.flatnonzero(self.endings)}),
        )

    def step(self) -> None:
        """Checks where the tables are, and moves each."""
        raise NotImplementedError

    def count(self, phases: np.ndarray, over: np.ndarray) -> np.ndarray:
        """Counts the decisions of a step, by the phases they were made in, and its ends; returns the rows of these."""
        ended = np.flatnonzero(over)
        self.decisions += phases.size
        self.phases += np.bincount(phases, minlength=len(PHASES))
        self.hands += ended.size
        self.endings += np.bincount(self.tables["ending"][ended], minlength=len(ENDINGS))
        return ended

    def fail(self, check: str, problem: str, tables: Tables | None = None, row: int = 0) -> NoReturn:
        """Raises the error of a failed check, with the story of the table if one is given."""
        raise ConformanceError(check, problem, self.reproduce, "" if tables is None else self.story(tables, row))

    def require(self, right: np.ndarray, check: str, problem: str, tables: Tables) -> None:
        """Fails unless something is right (N,) at all tables."""
        if not right.all():
            self.fail(check, problem, tables, int(np.argmin(right)))

    def story(self, tables: Tables, row: int) -> str:
        """Tells how a table came to where it is."""
        table = tables[row]
        try:
            line = table_record(tables, row).line()
        except ValueError as error:  # something is wrong with the table
            line = f"none can be written ({error})"
        return (
            f"table {row} of {tables.size}, hand {table['hand_number']}{' of matches' if self.match else ''}, "
            f"phase {PHASES[table['phase']]!r}, seat {table['mover']} to move\nrecord: {line}"
        )


# -------------------------------------------------------------------------------------------------------- the rules


class _RulesRun(_Run):
    """The checks of `check_rules`."""

    def __init__(self, rules: Rules, match: bool, seed: int, size: int, reproduce: str) -> None:
        super().__init__(rules, match, seed, size, reproduce)
        space = observation_space(rules)
        self.low, self.high = space.low, space.high
        # Two passes, a draw and a throw for each draw and one at the wall; then each card at most once, and three
        # passes, where the players lay their cards themselves.
        self.most_moves = 2 + 2 * (rules.draw_cap + 1) + (2 * rules.hand_size + 3 if rules.manual else 0)
        self.check_deal(np.arange(size), None)

    def step(self) -> None:
        """Checks where the tables are, plays a move at each, checks what came of it, and deals where a hand is over."""
        tables = self.tables
        mask = engine.legal(tables)
        self.check_position(tables, mask)
        actions = _choose(tables, mask, self.seed)
        before = _copy(tables)
        sampled = self.turn % _SAMPLE_EVERY == 0
        if sampled:
            self.check_acceptance(tables, mask, actions)
        try:
            points, over = engine.step(tables, actions)
        except IllegalAction as error:
            self.refused(error, tables, error.table)
        self.check_move(before, actions, points, over)
        self.check_turn(before, actions)
        ended = self.count(before["phase"], over)
        last = tables.take(ended)
        if ended.size:
            self.check_position(last, engine.legal(last))
            for row, state in enumerate(over[ended].tolist()):
                self.check_result(last, row)
                self.check_match(last, row, state)
            self.check_record(last, int(self.rng.integers(ended.size)))
        if sampled or ended.size:
            self.check_copies(before, actions, points, over)
        engine.deal(tables, ended)
        self.check_deal(ended, last)

    # ------------------------------------------------------------------------------------------------ one position

    def check_position(self, tables: Tables, mask: np.ndarray) -> None:
        """Checks all that can be said of a position."""
        self.check_cards(tables)
        self.check_mask(tables, mask)
        self.check_views(tables, mask, self.rng.integers(2, size=tables.size))

    def check_cards(self, tables: Tables) -> None:
        """Each card is in one place, and the hands have their size."""
        rules, rows = self.rules, np.arange(tables.size)
        hands, phase = tables["hands"], tables["phase"]
        pile = _in_place(tables["pile"], tables["pile_size"][:, None] > _CARDS)
        stock = _in_place(tables["deck"], (tables["stock_at"][:, None] <= _CARDS) & (rules.deck_size > _CARDS))
        sizes = np.bitwise_count(hands).astype(np.int64)
        total = sizes.sum(axis=1) + tables["pile_size"] + rules.deck_size - tables["stock_at"]
        whole = (hands[:, 0] | hands[:, 1] | pile | stock) == np.uint64(rules.pack)
        self.require(whole & (total == rules.deck_size), "cards", "hands, pile and stock are not the pack", tables)
        known = ~(tables["known"] & ~hands).any(axis=1)
        self.require(known, "cards", "a card is known to be in a hand where it is not", tables)

        # One more before the throw; and for good with big gin, or where the taking itself has ended the hand.
        throws = (phase == THROW) | (phase == WALL_THROW)
        capped = np.zeros(tables.size, dtype=bool)
        if rules.take_cap is not None:
            capped = (phase == OVER) & (tables["ending"] == DEAD) & (tables["takes"] == rules.take_cap)
        played = np.arange(MAX_MOVES) < tables["num_moves"][:, None]
        big = (played & (tables["moves"] == BIG_GIN)).any(axis=1)
        knocker = np.maximum(tables["knocking"], 0)
        expected = np.full((tables.size, 2), rules.hand_size)
        expected[rows, tables["mover"]] += throws | capped
        expected[rows, knocker] += big
        self.require((sizes == expected).all(axis=1), "cards", "a hand has a card too many or too few", tables)

        laid = np.bitwise_or.reduce(tables["laid"], axis=2)
        laid_off = np.bitwise_or.reduce(tables["laid_off"], axis=1)
        laid[rows, 1 - knocker] |= laid_off
        count = np.bitwise_count(tables["laid"]).sum(axis=(1, 2)) + np.bitwise_count(tables["laid_off"]).sum(axis=1)
        once = np.bitwise_count(laid).sum(axis=1) == count
        in_hand = ~(laid & ~hands).any(axis=1)
        self.require(in_hand, "cards", "a card that is laid down is not in its hand", tables)
        self.require(once, "cards", "a card is laid down twice", tables)

    def check_mask(self, tables: Tables, mask: np.ndarray) -> None:
        """Somebody can move until the hand is over, and the mask is made of zeros and ones."""
        if mask.shape != (tables.size, self.rules.num_actions) or mask.dtype != np.int8:
            self.fail("legal actions", f"the mask is {mask.dtype} of shape {mask.shape}")
        self.require(((mask == 0) | (mask == 1)).all(axis=1), "legal actions", "the mask is not of 0 and 1", tables)
        over = tables["phase"] == OVER
        some = mask.any(axis=1)
        self.require(some | over, "legal actions", "the player to move has no legal action", tables)
        self.require(~some | ~over, "legal actions", "the hand is over, and still actions are legal", tables)
        row = int(self.rng.integers(tables.size))
        found, expected = np.flatnonzero(mask[row]).tolist(), _legal_by_rules(self.rules, tables[row])
        if found != expected:
            only = ", ".join(action_name(action) for action in sorted(set(found) ^ set(expected)))
            self.fail("legal actions", f"mask and rules differ in: {only}", tables, row)

    def check_views(self, tables: Tables, mask: np.ndarray, seats: np.ndarray) -> None:
        """Nothing that a seat sees depends on what it cannot see, and observations lie in their space."""
        seen, (observations, masks) = _observe(tables, seats), view.look(tables, seats)
        moves = (tables["mover"] == seats) & (tables["phase"] != OVER)
        legal = (masks == np.where(moves[:, None], mask, 0)).all(axis=1)
        self.require(legal, "views", "the mask shown to a seat is not what is legal for it", tables)
        own = seen["hand"] == tables["hands"][np.arange(tables.size), seats]
        self.require(own, "views", "a seat does not see its hand", tables)
        drawn = (seen["drawn"] == NO_CARD) | _bits(seen["hand"])[np.arange(tables.size), seen["drawn"]]
        self.require(drawn, "views", "a seat has drawn a card that is not in its hand", tables)
        bad = ~((observations >= self.low) & (observations <= self.high))
        if bad.any():
            row, place = (int(index) for index in np.argwhere(bad)[0])
            bounds = f"{self.low[place]} to {self.high[place]}"
            problem = f"number {place} of seat {seats[row]} is {observations[row, place]}; expected {bounds}"
            self.fail("observation space", problem, tables, row)

        shuffled = _shuffle_hidden(tables, seats, self.rng)
        differs = _difference(seen, _observe(shuffled, seats))
        if differs:
            field, row = differs
            problem = f"seat {seats[row]} can tell from {field!r} of its view what it cannot see"
            self.fail("hidden cards", problem, tables, row)
        again = view.look(shuffled, seats)
        for name, mine, theirs in (("observation", observations, again[0]), ("mask", masks, again[1])):
            same = (mine == theirs).all(axis=1)
            self.require(same, "hidden cards", f"a seat can tell from its {name} what it cannot see", tables)
        same = (view.encode(seen) == observations).all(axis=1)
        self.require(same, "views", "look and observe show a seat two things", tables)

    def refused(self, error: IllegalAction, tables: Tables, row: int) -> NoReturn:
        """Fails because an action of the mask was refused."""
        self.fail("legal actions", f"{_told(error.action)} is refused, and the mask allows it", tables, row)

    def check_acceptance(self, tables: Tables, mask: np.ndarray, actions: np.ndarray) -> None:
        """The mask is what is accepted, and a refusal changes nothing: at one table, and for one action of a batch."""
        row = int(self.rng.integers(tables.size))
        legal = np.flatnonzero(mask[row]).tolist()
        if engine.legal_actions(tables, row) != legal:
            self.fail("legal actions", "legal_actions and the mask are not the same", tables, row)
        try:
            engine.step(tables.take(np.full(len(legal), row)), legal)
        except IllegalAction as error:
            self.refused(error, tables, row)
        one = tables.take([row])
        before = one.tobytes()
        expected = {"table": 0, "seat": int(one["mover"][0]), "legal": tuple(legal), "phase": PHASES[one["phase"][0]]}
        for action in _near_actions(one, self.rng):
            if action in legal:
                continue
            try:
                engine.step(one, [action])
            except IllegalAction as error:
                told = {name: getattr(error, name) for name in expected}
                if told != expected or error.action != action:
                    self.fail("illegal actions", f"the refusal tells {told}; expected {expected}", tables, row)
            else:
                self.fail("illegal actions", f"{_told(action)} is accepted, and the mask forbids it", tables, row)
            if one.tobytes() != before:
                self.fail("illegal actions", f"{_told(action)} was refused, and has changed the table", tables, row)

        batch, mixed = _copy(tables), actions.copy()
        mixed[row] = mask.shape[1]
        try:
            engine.step(batch, mixed)
        except IllegalAction as error:
            if error.table != row:
                self.fail("illegal actions", f"table {error.table} is named in place of {row}", tables, row)
        else:
            self.fail("illegal actions", f"{_told(mask.shape[1])} is accepted", tables, row)
        if batch.tobytes() != tables.tobytes():
            self.fail("illegal actions", "a refused action at one table has changed another", tables, row)

    # ---------------------------------------------------------------------------------------------------- one move

    def check_move(self, before: Tables, actions: np.ndarray, points: np.ndarray, over: np.ndarray) -> None:
        """A step does what it should and nothing else, points sum to zero, and hands end in time."""
        tables, rules, rows = self.tables, self.rules, np.arange(self.tables.size)
        ended = tables["phase"] == OVER
        self.require(points.sum(axis=1) == 0, "zero sum", "the points of the two seats do not sum to zero", tables)
        self.require(ended | ~points.any(axis=1), "moves", "points are won before the hand is over", tables)
        self.require((over != GOING_ON) == ended, "moves", "step and phase disagree whether the hand is over", tables)
        at = before["num_moves"]
        counted = (tables["num_moves"] == at + 1) & (tables["moves"][rows, at] == actions)
        self.require(counted, "moves", "a move was not kept", tables)
        for field in ("rules", "to_target", "dealer", "doubled", "limit", "deck", "key", "hand_number"):
            same = (before[field] == tables[field]).reshape(rows.size, -1).all(axis=1)
            self.require(same, "moves", f"a move has changed {field!r}", tables)
        waits = 1 - before["mover"]
        same = before["hands"][rows, waits] == tables["hands"][rows, waits]
        self.require(same, "moves", "a move has changed the hand of the seat that was not to move", tables)
        draws = tables["draws"] - before["draws"] == np.isin(actions, (DRAW, TAKE))
        stock = tables["stock_at"] - before["stock_at"] == (actions == DRAW)
        self.require(draws & stock, "moves", "a draw was not counted, or is not of one card", tables)

        for field, expected in _books_after(before, actions).items():
            same = (tables[field] == expected).reshape(rows.size, -1).all(axis=1)
            self.require(same, "moves", f"{field!r} is not what the move makes it", tables)

        winner, won = tables["winner"], np.zeros_like(points)
        scored = np.flatnonzero(ended & (winner != NOBODY))
        won[scored, winner[scored]] = tables["points"][scored]
        won[scored, 1 - winner[scored]] = -tables["points"][scored]
        same = (won == points).all(axis=1)
        self.require(same, "zero sum", "the points of the step are not those of the winner", tables)
        same = (tables["scores"] == before["scores"] + np.maximum(won, 0)).all(axis=1)
        self.require(same, "matches", "the scores are not those before and the points won", tables)

        # Before there is no room for another move.
        more = ended | (tables["num_moves"] < self.most_moves)
        self.require(more, "length", f"a hand goes on after {self.most_moves} moves", tables)
        at_wall = int(rules.wall == "knock")
        few = tables["draws"] <= rules.draw_cap + at_wall
        self.require(few, "length", f"a hand has more than {rules.draw_cap} draws", tables)
        left = rules.deck_size - tables["stock_at"]
        self.require(left >= rules.stock_floor, "length", f"the stock is below {rules.stock_floor} cards", tables)
        playing = ~ended & (tables["knocking"] == NOBODY)
        for cap, field in ((rules.take_cap, "takes"), (rules.swap_cap, "swaps")):
            if cap is not None:
                self.require(~playing | (tables[field] < cap), "length", f"{cap} {field}, and play goes on", tables)

    def check_turn(self, before: Tables, actions: np.ndarray) -> None:
        """At one table it is the turn of whom the rules say, to do what they say."""
        row = int(self.rng.integers(actions.size))
        table, action = self.tables[row], int(actions[row])
        phase, mover = _turn_after(self.rules, before[row], action)
        if table["phase"] != phase or (phase != OVER and table["mover"] != mover):
            found = f"phase {PHASES[table['phase']]!r} of seat {table['mover']}"
            problem = f"after {_told(action)} comes {found}; expected {PHASES[phase]!r} of seat {mover}"
            self.fail("moves", problem, self.tables, row)

    def check_copies(self, before: Tables, actions: np.ndarray, points: np.ndarray, over: np.ndarray) -> None:
        """A copy plays on as the table itself, wherever it lies and whatever lies beside it."""
        tables = self.tables
        waits = self.rng.random(tables.size) < 0.5
        copy = _copy(before)
        engine.step(copy, np.where(waits, NO_ACTION, actions))
        for rows, expected, problem in (
            (np.flatnonzero(waits), before, "a table without an action has changed"),
            (np.flatnonzero(~waits), tables, "a copy does not play on as the table itself"),
        ):
            differs = _difference(copy.take(rows), expected.take(rows))
            if differs:
                self.fail("copies", f"{problem}: {differs[0]!r} differs", before, int(rows[differs[1]]))
        order = self.rng.permutation(tables.size)
        moved = before.take(order)
        moved_points, moved_over = engine.step(moved, actions[order])
        differs = _difference(moved, tables.take(order))
        if differs:
            row = int(order[differs[1]])
            self.fail("copies", f"a table plays another way in another row: {differs[0]!r} differs", before, row)
        if (moved_points != points[order]).any() or (moved_over != over[order]).any():
            self.fail("copies", "points or ends differ when tables lie in other rows")
        if over.any():
            dealt, at_once = _copy(tables), _copy(before)
            engine.deal(dealt, np.flatnonzero(over))
            engine.step(at_once, actions, redeal=True)
            differs = _difference(at_once, dealt)
            if differs:
                problem = f"to deal in the step differs from step and deal: {differs[0]!r}"
                self.fail("copies", problem, before, differs[1])

    # -------------------------------------------------------------------------------------------------- a hand's end

    def check_result(self, tables: Tables, row: int) -> None:
        """Checks how a hand ended: why, what lies on the table, what that is worth."""
        rules, table = self.rules, tables[row]
        ending, knocker = int(table["ending"]), int(table["knocker"])
        hands = [int(hand) for hand in table["final_hands"]]

        def must(right: bool, problem: str) -> None:
            if not right:
                told = engine.result(tables, row)
                self.fail("results", f"{problem}\nresult: {told}", tables, row)

        must(hands == [int(hand) for hand in table["hands"]], "the hands of the result are not those held")
        must(table["num_turns"] == table["draws"], "the number of turns is not that of the draws")
        if ending in (DEAD, TRUNCATED):
            best = melds.deadwood(table["final_hands"]).tolist()
            must(table["deadwood"].tolist() == best, f"the deadwood of an unplayed hand is not {best}")
            must(knocker == NOBODY and table["winner"] == NOBODY, "somebody has knocked or won in an unplayed hand")
            must(table["points"] == 0, "an unplayed hand has points")
            must(not table["layoffs"].any(), "nothing can be laid off in an unplayed hand")
            stock = rules.deck_size - table["stock_at"]
            why = {
                "the stock": stock == rules.stock_floor,
                "the cap on swaps": table["swaps"] == rules.swap_cap,
                "the cap on takes": table["takes"] == rules.take_cap,
            }
            must(ending == TRUNCATED or any(why.values()), "the hand is dead without a reason")
            must(ending == DEAD or table["draws"] >= rules.draw_cap, "the hand is truncated before the cap on draws")
            return

        must(knocker == table["knocking"], "the knocker is not who knocked")
        defender = 1 - knocker
        gin = ending in (GINNED, BIG_GINNED)
        loose = list(hands)
        for seat in range(2):
            for meld in (int(meld) for meld in table["melds"][seat]):
                must(not meld or _is_meld(meld), f"{cards_text(meld)} is no meld")
                must(loose[seat] & meld == meld, f"{cards_text(meld)} is not in the hand, or laid twice")
                loose[seat] &= ~meld
        grown = [int(meld) for meld in table["melds"][knocker]]
        for slot, cards in enumerate(int(cards) for cards in table["layoffs"]):
            must(not (cards and gin), "cards are laid off on a gin")
            must(loose[defender] & cards == cards, f"{cards_text(cards)}, laid off, is not in the hand, or laid twice")
            must(_fits(grown[slot], cards), f"{cards_text(cards)} does not fit {cards_text(grown[slot])}")
            loose[defender] &= ~cards
            grown[slot] |= cards
        left = [_points(cards) for cards in loose]
        must(table["deadwood"].tolist() == left, f"the deadwood is not what is left: {left}")
        must(left[knocker] <= table["limit"], f"the knocker has more than {table['limit']}")
        held = hands[knocker].bit_count() - rules.hand_size
        must(ending != BIG_GINNED or held == 1 and left[knocker] == 0, "big gin is not eleven melded cards")
        must(ending == BIG_GINNED or gin == (left[knocker] == 0), "gin is to have nothing left")

        least = melds.deadwood(table["final_hands"]).tolist()
        if rules.knocker_melds == "auto":
            must(left[knocker] == least[knocker], f"the engine leaves the knocker more than {least[knocker]}")
        if rules.layoffs == "best":
            best = _best_defence(hands[defender], [0] * MAX_MELDS if gin else table["melds"][knocker].tolist())
            laid_off = sum(int(cards).bit_count() for cards in table["layoffs"])
            must(
                (left[defender], laid_off) == best,
                f"the engine leaves the defender {left[defender]} after {laid_off} layoffs; the best is {best}",
            )
        elif rules.layoffs == "ascending" and not gin:
            more = [
                card for card in from_mask(loose[defender]) if any(_fits(meld, 1 << card) for meld in grown if meld)
            ]
            must(not more, f"{cards_text(more)} could still be laid off")

        doubled, difference = bool(table["doubled"]), left[defender] - left[knocker]
        factor, bonus_factor = 1 + doubled, 1 + (doubled and rules.double_spades == "all")
        if gin:
            bonus = rules.gin_bonus if ending == GINNED else rules.big_gin_bonus or 0
            expected = (ending, knocker, factor * left[defender] + bonus_factor * bonus)
        elif difference > 0:
            expected = (KNOCKED, knocker, factor * difference)
        elif difference == 0 and rules.tie == "nothing":
            expected = (TIED, NOBODY, 0)
        else:
            expected = (UNDERCUT, defender, -factor * difference + bonus_factor * rules.undercut_bonus)
        told = ending, int(table["winner"]), int(table["points"])
        must(told == expected, f"ending, winner and points are {told}; expected {expected}")

    def check_match(self, tables: Tables, row: int, state: int) -> None:
        """Checks whether the match, if it is one, goes on after a hand."""
        target, table = self.rules.target, tables[row]
        winner = NOBODY
        if self.match and table["winner"] != NOBODY:
            if target is None or table["scores"][table["winner"]] >= target:
                winner = int(table["winner"])
        if table["match_winner"] != winner:
            self.fail("matches", f"the match winner is {table['match_winner']}; expected {winner}", tables, row)
        tied = target is None and table["ending"] == TIED
        expected = EPISODE_ENDED if not self.match or winner != NOBODY or tied else HAND_ENDED
        if state != expected:
            self.fail("matches", f"the step says {state} of the episode; expected {expected}", tables, row)

    def check_record(self, tables: Tables, row: int) -> None:
        """The record of a hand (`gin_env.record`) plays to the same table."""
        replayed = tables[:0]
        try:
            for replayed in engine.replay(table_record(tables, row).line()):  # noqa: B007
                pass
        except RecordError as error:
            self.fail("records", f"the record of the hand cannot be played: {error}", tables, row)
        # What was dealt before is no part of a record, and what lies above num_moves is stale.
        for field in set(tables.dtype.names or ()) - {"key", "hand_number", "moves"}:
            if (replayed[field][0] != tables[field][row]).any():
                self.fail("records", f"the record of the hand leads to another {field!r}", tables, row)

    # ------------------------------------------------------------------------------------------------------- a deal

    def check_deal(self, rows: np.ndarray, last: Tables | None) -> None:
        """Checks the hands that have just been dealt.

        Args:
            rows: Where.
            last: These tables as their last hands ended; None for the first hands.
        """
        rules, pack = self.rules, from_mask(self.rules.pack)
        size = 2 * rules.hand_size
        for place, row in enumerate(rows.tolist()):
            table, before = self.tables[row], None if last is None else last[place]
            deck = [int(card) for card in table["deck"][: rules.deck_size]]
            if sorted(deck) != pack:
                self.fail("deals", "the deck is not the pack", self.tables, row)
            dealer, upcard = int(table["dealer"]), deck[size]
            hands = [from_mask(int(table["hands"][seat])) for seat in (1 - dealer, dealer)]
            limit = rules.knock_limit
            if rules.oklahoma:
                limit = 0 if upcard % NUM_RANKS == 0 else int(CARD_POINTS[upcard])
            doubled = rules.double_spades != "no" and upcard < NUM_RANKS
            dealers, scores = self.expected_deal(before)
            number = 0 if before is None else int(before["hand_number"]) + 1
            for field, found, expected in (
                ("hands", hands, [sorted(deck[0:size:2]), sorted(deck[1:size:2])]),
                ("pile", table["pile"][: table["pile_size"]].tolist(), [upcard]),
                ("stock_at", int(table["stock_at"]), size + 1),
                ("phase", int(table["phase"]), OFFER),
                ("mover", int(table["mover"]), 1 - dealer),
                ("dealer", dealer, dealer if dealer in dealers else dealers),
                ("limit", int(table["limit"]), limit),
                ("doubled", bool(table["doubled"]), doubled),
                ("scores", table["scores"].tolist(), scores),
                ("hand_number", int(table["hand_number"]), number),
                ("match_winner", int(table["match_winner"]), NOBODY),
                *((field, int(table[field]), 0) for field in ("draws", "takes", "swaps", "num_moves")),
            ):
                if found != expected:
                    self.fail("deals", f"{field!r} of a new hand is {found}; expected {expected}", self.tables, row)

    def expected_deal(self, before: np.void | None) -> tuple[tuple[int, ...], list[int]]:
        """Returns who may deal after a hand (None for the first), and with what scores the next one begins."""
        rules = self.rules
        unplayed = before is not None and before["ending"] in (DEAD, TRUNCATED)
        goes_on = self.match and before is not None and before["match_winner"] == NOBODY
        if before is None or not goes_on or (rules.target is None and not unplayed):
            return ((0, 1) if rules.first_dealer == "random" else (rules.first_dealer,)), [0, 0]
        dealer, winner = int(before["dealer"]), int(before["winner"])
        if rules.next_dealer == "winner" and winner != NOBODY:
            dealer = winner
        elif rules.next_dealer == "alternate" and not unplayed:
            dealer = 1 - dealer
        return (dealer,), before["scores"].tolist()

    # ------------------------------------------------------------------------------------------------------- batches

    def check_batches(self) -> None:
        """Tables play the same alone and in other batches, from the first deal on."""
        size = self.tables.size

        def played(first: int, number: int) -> Tables:
            tables = engine.new_tables(self.rules, number, seed=self.seed, first=first, match=self.match)
            for _ in range(_BATCH_STEPS):
                engine.step(tables, _choose(tables, engine.legal(tables), self.seed), redeal=True)
            return tables

        whole = played(0, size)
        for first, number in {(0, 1), (size // 2, 1), (size // 3, max(size // 4, 1))}:
            differs = _difference(whole[first : first + number], played(first, number))
            if differs:
                problem = f"a table plays another way in a batch of {number} than of {size}: {differs[0]!r} differs"
                self.fail("batches", problem, whole, first + differs[1])


def _told(action: int) -> str:
    exists = 0 <= action < NUM_MANUAL_ACTIONS
    return f"{action_name(action)!r} (action {action})" if exists else f"action {action}, which does not exist,"


def _near_actions(one: Tables, rng: np.random.Generator) -> list[int]:
    """Returns some actions that a table might take by mistake, mostly with the mover's cards."""
    hand = int(one["hands"][0, one["mover"][0]])
    cards = [*from_mask(hand), *rng.integers(NUM_CARDS, size=2).tolist()]
    actions = [PASS, DRAW, TAKE, BIG_GIN, -2, engine.num_actions(one), NUM_MANUAL_ACTIONS, 1 << 40]
    actions += [first + card for first in (DISCARD, KNOCK) for card in cards]
    some = cards if one["rules"]["manual"][0] else cards[:1]
    actions += [LAYOFF + slot * NUM_CARDS + card for slot in range(MAX_MELDS) for card in some]
    actions += (MELD + np.flatnonzero((MELDS & ~np.uint64(hand)) == 0)).tolist()
    actions += rng.integers(NUM_MANUAL_ACTIONS, size=4).tolist()
    return [actions[place] for place in rng.permutation(len(actions))[:_REFUSALS]]


# Written out once more, in plain Python, for the engine's own words for it are what is checked.


def _points(cards: int) -> int:
    return sum(min(card % NUM_RANKS + 1, 10) for card in from_mask(cards))


def _is_meld(cards: int) -> bool:
    """Whether cards are a set of three or four, or a run of three or more."""
    ids = from_mask(cards)
    if len(ids) < 3:
        return False
    if len({card % NUM_RANKS for card in ids}) == 1:
        return True
    return ids[-1] - ids[0] == len(ids) - 1 and ids[0] // NUM_RANKS == ids[-1] // NUM_RANKS


def _fits(meld: int, cards: int) -> bool:
    """Whether all the cards can be laid off on a meld: with them it is one still."""
    return not cards or (_is_meld(meld) and not meld & cards and _is_meld(meld | cards))


def _legal_by_rules(rules: Rules, table: np.void) -> list[int]:
    """Returns what the mover of a table may do."""
    phase, limit = int(table["phase"]), int(table["limit"])
    hand, pile = int(table["hands"][table["mover"]]), table["pile"][: table["pile_size"]].tolist()
    if phase in (OFFER, OFFER_DEALER):
        return [PASS, TAKE]
    if phase in (DRAW_STOCK, DRAW_ANY):
        return [DRAW] if phase == DRAW_STOCK else [DRAW, TAKE]
    if phase in (THROW, WALL, WALL_THROW):
        taken = pile[-1] if phase == WALL else int(table["taken"])
        held = hand | 1 << taken if phase == WALL else hand
        throws = [card for card in from_mask(held) if card != taken or rules.rediscard]
        left = melds.deadwood(np.array([held, *(held & ~(1 << card) for card in throws)], dtype=np.uint64)).tolist()
        knocks = [KNOCK + card for card, points in zip(throws, left[1:], strict=True) if points <= limit]
        big = [BIG_GIN] if rules.big_gin_bonus is not None and left[0] == 0 else []
        if phase == WALL:
            return ([PASS, TAKE] if knocks or big else [PASS]) if rules.wall == "knock" else []
        return [*(DISCARD + card for card in throws if phase == THROW), *knocks, *big]
    if phase == OVER:
        return []

    knocker = int(table["knocking"])
    laid = [int(cards) for cards in table["laid"][table["mover"]]]
    laid += [int(cards) for cards in table["laid_off"]] if table["mover"] != knocker else []
    rest = hand & ~sum(laid)
    if phase == LAY_OFF:
        grown = [int(meld | cards) for meld, cards in zip(table["laid"][knocker], table["laid_off"], strict=True)]
        fit = [(slot, card) for slot, meld in enumerate(grown) for card in from_mask(rest) if _fits(meld, 1 << card)]
        return [PASS, *(LAYOFF + slot * NUM_CARDS + card for slot, card in fit)]
    numbers = np.flatnonzero(MELDS & ~np.uint64(rest) == 0)
    if phase == DECLARE:
        numbers = numbers[melds.deadwood(np.uint64(rest) & ~MELDS[numbers]) <= limit]
    stop = [PASS] if phase == DEFEND or _points(rest) <= limit else []
    return [*stop, *(MELD + numbers).tolist()]


def _books_after(before: Tables, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the fields in which a table keeps what has been drawn and thrown, as a move leaves them."""
    rows, mover, phase = np.arange(before.size), before["mover"], before["phase"]
    throws, draws, takes = (actions >= DISCARD) & (actions < BIG_GIN), actions == DRAW, actions == TAKE
    thrown = np.where(throws, (actions - DISCARD) % NUM_CARDS, 0)
    top = before["pile"][rows, np.maximum(before["pile_size"] - 1, 0)]
    refused = (actions == PASS) & (phase <= OFFER_DEALER) | draws & (phase == DRAW_ANY)
    zero = np.uint64(0)
    books = {field: before[field].copy() for field in ("thrown", "declined", "takes", "swaps", "pile_size")}
    books["thrown"][rows, mover] |= np.where(throws, _U1 << thrown.astype(np.uint64), zero)
    books["declined"][rows, mover] |= np.where(refused, _U1 << np.maximum(top, 0).astype(np.uint64), zero)
    books["takes"] += takes & (phase == DRAW_ANY)
    books["swaps"] = np.where(throws, np.where(thrown == before["taken"], before["swaps"] + 1, 0), before["swaps"])
    books["pile_size"] += throws
    books["pile_size"] -= takes
    # The turn of a big gin ends without a throw.
    ends = throws | (actions == BIG_GIN) & (before["rules"]["manual"] != 0)
    books["taken"] = np.where(takes, top, np.where(ends, NO_CARD, before["taken"]))
    drawn = before["deck"][rows, np.minimum(before["stock_at"], NUM_CARDS - 1)]
    books["drawn"] = np.where(draws, drawn, np.where(ends, NO_CARD, before["drawn"]))
    return books


def _turn_after(rules: Rules, table: np.void, action: int) -> tuple[int, int]:
    """Returns the phase after a move, and whose it is (nobody's where the hand is over)."""
    phase, mover = int(table["phase"]), int(table["mover"])
    hand = int(table["hands"][mover])
    over = (OVER, NOBODY)

    def melds_are_down(gin: bool) -> tuple[int, int]:
        if rules.layoffs == "manual" and not gin:
            return LAY_OFF, 1 - mover
        return (DEFEND, 1 - mover) if rules.defender_melds == "manual" else over

    if phase in (OFFER, OFFER_DEALER) and action == PASS:
        return (OFFER_DEALER if phase == OFFER else DRAW_STOCK), 1 - mover
    if action in (DRAW, TAKE):
        capped = action == TAKE and phase == DRAW_ANY and table["takes"] + 1 == rules.take_cap
        return over if capped else (WALL_THROW if phase == WALL else THROW, mover)
    if DISCARD <= action < KNOCK:
        swaps = table["swaps"] + 1 if action - DISCARD == table["taken"] else 0
        if swaps == rules.swap_cap:
            return over
        if rules.deck_size - table["stock_at"] <= rules.stock_floor:
            return (WALL, 1 - mover) if rules.wall == "knock" else over
        return over if table["draws"] >= rules.draw_cap else (DRAW_ANY, 1 - mover)
    if KNOCK <= action < BIG_GIN:
        left = melds.deadwood(np.array([hand & ~(1 << (action - KNOCK))], dtype=np.uint64))[0]
        return (DECLARE, mover) if rules.knocker_melds == "manual" else melds_are_down(gin=left == 0)
    if action == BIG_GIN:
        return melds_are_down(gin=True)
    if action != PASS:
        return phase, mover
    if phase == DECLARE:
        return melds_are_down(gin=_points(hand & ~sum(int(meld) for meld in table["laid"][mover])) == 0)
    return (DEFEND, mover) if phase == LAY_OFF and rules.defender_melds == "manual" else over


def _best_defence(hand: int, knocker_melds: Iterable[int]) -> tuple[int, int]:
    """Returns the least deadwood of a defender, and the fewest layoffs that leave it: from all that can be laid off."""
    options = {0}
    for meld in knocker_melds:
        if meld:
            options |= {laid | cards for laid in options for cards in _layoffs(hand & ~laid, meld)}
    left = melds.deadwood(np.array([hand & ~laid for laid in options], dtype=np.uint64)).tolist()
    return min(zip(left, (laid.bit_count() for laid in options), strict=True))


def _layoffs(hand: int, meld: int) -> set[int]:
    """Returns the sets of cards of a hand that can be laid off on a meld, none included."""
    found, grow = {0}, [0]
    while grow:
        laid = grow.pop()
        for card in from_mask(hand & ~laid):
            more = laid | 1 << card
            if more not in found and _is_meld(meld | more):
                found.add(more)
                grow.append(more)
    return found


# ------------------------------------------------------------------------------------------------------- the agents


class _AgentRun(_Run):
    """The checks of `check_agent`."""

    def __init__(self, agent: Player, rules: Rules, seed: int, size: int, reproduce: str) -> None:
        super().__init__(rules, False, seed, size, reproduce)
        self.agent = agent
        name = getattr(agent, "name", None)
        if not isinstance(name, str) or not name:
            self.fail("name", f"the agent's name is {name!r}; expected some text")
        self.keys_seed = _stream_seed(seed, _AGENT_STREAM)

    def step(self) -> None:
        """Asks the agent, in several ways, and moves each table, a part of them at random."""
        tables = self.tables
        mask = engine.legal(tables)
        keys = engine.decision_keys(self.keys_seed, tables)
        chosen = self.ask(tables, mask, keys)
        self.check_legal(tables, mask, chosen)
        self.check_same("keys", "asked again with the same keys", tables, mask, keys, chosen, np.arange(tables.size))
        for rows, asked in (
            (self.rng.permutation(tables.size), "in another order of rows"),
            (np.flatnonzero(self.rng.random(tables.size) < 0.5), "in a part of the batch"),
            (self.rng.integers(tables.size, size=1), "for a row alone"),
        ):
            if rows.size:
                self.check_same("batches", asked, tables, mask, keys, chosen, rows)
        shuffled = _shuffle_hidden(tables, tables["mover"].astype(np.int64), self.rng)
        asked = "with the cards that its seat cannot see in other places"
        self.check_same("hidden cards", asked, shuffled, mask, keys, chosen, np.arange(tables.size))

        strays = self.rng.random(tables.size) < _STRAYS
        phases = tables["phase"].copy()
        _, over = engine.step(tables, np.where(strays, _choose(tables, mask, self.seed), chosen))
        engine.deal(tables, self.count(phases, over))

    def ask(self, tables: Tables, mask: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Returns the agent's choices, once they are seen to be integers, one for each row."""
        given = (_observe(tables, tables["mover"]), mask.copy(), keys.copy())
        kept = tuple(one.take(np.arange(tables.size), axis=0) for one in given)
        try:
            chosen = self.agent.act(*given)
        except Exception as error:
            problem = f"act raised {type(error).__name__}: {error}"
            raise ConformanceError("act", problem, self.reproduce, self.story(tables, 0)) from error
        for name, one, before in zip(("view", "mask", "rng"), given, kept, strict=True):
            if one.tobytes() != before.tobytes():
                self.fail("inputs", f"act has changed its argument {name!r}", tables)
        if not isinstance(chosen, np.ndarray) or chosen.dtype.kind not in "iu" or chosen.shape != (tables.size,):
            what = f"{chosen.dtype} of shape {chosen.shape}" if isinstance(chosen, np.ndarray) else repr(type(chosen))
            self.fail("shape", f"act returned {what}; expected an array of {tables.size} integers", tables)
        return chosen.astype(np.int64)

    def check_legal(self, tables: Tables, mask: np.ndarray, chosen: np.ndarray) -> None:
        """Fails if an action is illegal."""
        exists = (chosen >= 0) & (chosen < mask.shape[1])
        legal = exists & (mask[np.arange(chosen.size), np.where(exists, chosen, 0)] == 1)
        if not legal.all():
            row = int(np.argmin(legal))
            names = ", ".join(action_name(int(action)) for action in np.flatnonzero(mask[row]))
            self.fail("legal", f"act chose {_told(int(chosen[row]))}; legal: {names}", tables, row)

    def check_same(
        self,
        check: str,
        asked: str,
        tables: Tables,
        mask: np.ndarray,
        keys: np.ndarray,
        chosen: np.ndarray,
        rows: np.ndarray,
    ) -> None:
        """Fails if the agent, asked for some rows, chooses other than before."""
        again = self.ask(tables.take(rows), mask[rows], keys[rows])
        differs = np.flatnonzero(again != chosen[rows])
        if differs.size:
            row = int(rows[differs[0]])
            first, second = _told(int(chosen[row])), _told(int(again[differs[0]]))
            self.fail(check, f"{asked}, act chose {second} in place of {first}", tables, row)
