"""The conformance checks: what is right passes, and each check fails on something that is broken on purpose."""

import dataclasses
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import agents
from gin_env import PRESETS, Rules, engine, preset, testing, view
from gin_env.actions import DRAW, KNOCK, MELD, NUM_ACTIONS, PASS, TAKE
from gin_env.engine import GOING_ON, IllegalAction
from gin_env.record import table_record
from gin_env.tables import (
    BIG_GINNED,
    DEAD,
    DEFEND,
    DRAW_ANY,
    DRAW_STOCK,
    GINNED,
    KNOCKED,
    LAY_OFF,
    OVER,
    PHASES,
    THROW,
    TRUNCATED,
)
from gin_env.testing import ConformanceError, Report, check_agent, check_rules
from tests.test_agents import ALONE

# ------------------------------------------------------------------------------------------------- what is right


@pytest.mark.parametrize("name", PRESETS)
def test_presets_conform(name: str) -> None:
    report = check_rules(name, hands=150, seed=3)
    assert report.hands >= 150
    assert sum(report.endings.values()) == report.hands
    assert sum(report.phases.values()) == report.decisions
    expected = {"offer", "offer-dealer", "draw-stock", "draw", "throw"}
    if name == "openspiel":
        expected |= {"wall", "wall-throw", "declare", "lay-off", "defend"}
    if name == "eaai":
        expected |= {"declare", "defend"}
    assert set(report.phases) == expected
    assert {"knock", "gin", "dead"} <= set(report.endings)


HOUSE_RULES = {
    "doubled": preset("rummyplus", oklahoma=True, double_spades="all", tie="undercut", big_gin_bonus=50),
    "one-hand": preset("plus20", target=None, oklahoma=True, double_spades="deadwood"),
    "winner-deals": preset("luciano", next_dealer="winner", first_dealer=0, target=30, draw_cap=9),
    "same-dealer": preset("luciano", next_dealer="same", stock_floor=0, swap_cap=1, rediscard=True),
    "few-takes": preset("openspiel", take_cap=3, swap_cap=None, target=None, tie="undercut"),
    "half-manual": preset("cardpuzzle", knocker_melds="manual", layoffs="manual", wall="knock"),
    "own-layoffs": preset("luciano", layoffs="manual", defender_melds="manual", oklahoma=True),
    "engine-defends": preset("rummyplus", layoffs="ascending", wall="knock", big_gin_bonus=31),
    "big-gin-by-hand": Rules(ranks=7, hand_size=5, knock_limit=4, layoffs="manual", defender_melds="manual"),
    "smallest": Rules(ranks=3, suits=3, hand_size=2, knock_limit=2, stock_floor=1, target=None),
    "one-suit": Rules(suits=1, hand_size=3, rediscard=True, stock_floor=0, wall="knock", knocker_melds="manual"),
    "no-limit": Rules(knock_limit=100, undercut_bonus=0, gin_bonus=0, draw_cap=1),
}


@pytest.mark.parametrize("name", HOUSE_RULES)
def test_house_rules_conform(name: str) -> None:
    assert check_rules(HOUSE_RULES[name], hands=200, seed=1, tables=64).hands >= 200


@pytest.mark.parametrize("name", [*PRESETS, *HOUSE_RULES])
def test_legal_actions_by_the_rules(name: str) -> None:
    """What the check says of one table in each step, at all of them, in all phases."""
    rules = HOUSE_RULES[name] if name in HOUSE_RULES else preset(name)
    tables, phases = engine.new_tables(rules, 64, seed=1), set()
    for _ in range(120):
        mask = engine.legal(tables)
        for row in range(tables.size):
            assert np.flatnonzero(mask[row]).tolist() == testing._legal_by_rules(rules, tables[row])
        phases |= set(tables["phase"].tolist())
        over = np.flatnonzero(tables["phase"] == OVER)
        engine.step(tables, testing._choose(tables, mask, 1))
        engine.deal(tables, over)
    if name == "openspiel":
        assert phases == set(range(len(PHASES)))


def test_report_is_the_seeds() -> None:
    assert check_rules("plus20", hands=30, seed=5, tables=7) == check_rules("plus20", hands=30, seed=5, tables=7)
    assert check_rules("plus20", hands=30, seed=5, tables=7) != check_rules("plus20", hands=30, seed=6, tables=7)
    one = check_rules(preset("plus20"), hands=1, tables=1)
    assert one + one == Report(2 * one.hands, 2 * one.decisions, one.phases + one.phases, one.endings + one.endings)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("spec", ALONE)
def test_scripted_agents_conform(spec: str, name: str) -> None:
    report = check_agent(agents.make(spec), name, hands=50, seed=2)
    assert report.hands >= 50
    assert set(PHASES) - {"over", "wall", "wall-throw"} <= set(report.phases)


class Uniform:
    """Any legal action, under all rules."""

    name = "uniform"

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        noise = engine.mix_keys(0, rng[:, None] + np.arange(mask.shape[1], dtype=np.uint64))
        return np.where(mask == 1, noise >> np.uint64(1), 0).argmax(axis=1)


@pytest.mark.parametrize("name", PRESETS)
def test_an_agent_that_plays_everything_conforms(name: str) -> None:
    report = check_agent(Uniform(), name, hands=64)
    assert report.hands >= 64 if preset(name).manual and preset(name).wall == "knock" else report.hands >= 128
    assert {"wall", "declare", "lay-off", "defend"} <= set(report.phases)


@pytest.mark.parametrize("name", ["hands", "tables"])
def test_bad_arguments(name: str) -> None:
    for check in (lambda **sizes: check_rules("plus20", **sizes), lambda **sizes: check_agent(Uniform(), **sizes)):
        with pytest.raises(ValueError, match=f"{name} is 0; expected at least 1"):
            check(**{name: 0})


# ------------------------------------------------------------------------------------------------------ broken rules

Step = Callable[..., tuple[np.ndarray, np.ndarray]]
Change = Callable[..., object]
true_step, true_deal, true_legal, true_new = engine.step, engine.deal, engine.legal, engine.new_tables
true_look, true_observe, true_encode = view.look, view.observe, view.encode
true_replay, true_by_rules = engine.replay, testing._legal_by_rules


def after_step(change: Change) -> dict[str, Step]:
    """A step that is followed by a change of tables, actions, points and ends; of tables only where they have moved."""

    def step(tables: np.ndarray, actions: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        points, over = true_step(tables, actions, **options)
        waiting = np.flatnonzero(np.asarray(actions) == engine.NO_ACTION)
        kept = tables.take(waiting)
        change(tables, np.asarray(actions), points, over)
        tables[waiting] = kept
        return points, over

    return {"engine.step": step}


def at_ends(change: Change, only: Callable[[np.void], bool] = lambda table: True) -> dict[str, Step]:
    """A step that changes each table where a hand has just ended."""

    def change_some(tables: np.ndarray, actions: np.ndarray, *_: np.ndarray) -> None:
        for row in np.flatnonzero((tables["phase"] == OVER) & (actions != engine.NO_ACTION)):
            if only(tables[row]):
                change(tables[row])

    return after_step(change_some)


def put(field: str, value: Any) -> Change:
    """A change that sets a field."""

    def change(tables: Any, *_: np.ndarray) -> None:
        tables[field] = value(tables) if callable(value) else value

    return change


def add(field: str, value: int) -> Change:
    """A change that adds to a field."""
    return put(field, lambda tables: tables[field] + value)


def other_rules(**changes: Any) -> dict[str, Any]:
    """Tables that play other rules than those asked for."""

    def new_tables(rules: Rules, size: int, **options: Any) -> np.ndarray:
        return true_new(dataclasses.replace(rules, **changes), size, **options)

    return {"engine.new_tables": new_tables}


def masks_with(change: Callable[[np.ndarray, np.ndarray], object]) -> dict[str, Any]:
    """The same change of masks, knowing the tables, wherever they come from."""

    def legal(tables: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        mask = true_legal(tables, out)
        change(tables, mask)
        return mask

    def look(tables: np.ndarray, seats: Any = None) -> tuple[np.ndarray, np.ndarray]:
        observations, masks = true_look(tables, seats)
        moves = (tables["mover"] == seats) & (tables["phase"] != OVER)
        masks[moves] = legal(tables.take(np.flatnonzero(moves))) if moves.any() else 0
        return observations, masks

    return {"engine.legal": legal, "view.look": look}


def show(action: int, phase: int) -> dict[str, Any]:
    """A mask that turns one action of a phase round."""

    def change(tables: np.ndarray, mask: np.ndarray) -> None:
        mask[:, action] ^= tables["phase"] == phase

    return masks_with(change)


def hide_draw(tables: np.ndarray, mask: np.ndarray) -> None:
    """Whether one may draw depends on the last card of the stock."""
    mask[:, DRAW] &= (tables["phase"] != DRAW_ANY) | (tables["deck"][:, 51] % 2 == 0)


def hide_draw_by_rules(rules: Rules, table: np.void) -> list[int]:
    hidden = table["phase"] == DRAW_ANY and table["deck"][51] % 2
    return [action for action in true_by_rules(rules, table) if action != DRAW or not hidden]


def look_with(change: Callable[[np.ndarray, np.ndarray, np.ndarray], object]) -> dict[str, Any]:
    """A look whose observations and masks are changed, knowing the tables."""

    def look(tables: np.ndarray, seats: Any = None) -> tuple[np.ndarray, np.ndarray]:
        observations, masks = true_look(tables, seats)
        change(tables, observations, masks)
        return observations, masks

    return {"view.look": look}


def observe_with(change: Callable[[np.ndarray, np.ndarray], object]) -> dict[str, Any]:
    """A view that is changed, knowing the tables."""

    def observe(tables: np.ndarray, seats: Any = None, out: np.ndarray | None = None) -> np.ndarray:
        seen = true_observe(tables, seats, out)
        change(tables, seen)
        return seen

    return {"view.observe": observe}


def louder() -> dict[str, Any]:
    """Observations that are out of bounds wherever they come from."""
    broken = look_with(lambda tables, observations, masks: np.multiply(observations, 100, out=observations))
    return broken | {"view.encode": lambda view, out=None: true_encode(view, out) * 100}


def refusing(change: Callable[[np.ndarray, IllegalAction], object], least: int = 1) -> dict[str, Step]:
    """A step of at least so many tables that does more than to refuse: plays the action that it is given, if any."""

    def step(tables: np.ndarray, actions: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        try:
            return true_step(tables, actions, **options)
        except IllegalAction as error:
            if tables.size < least:
                raise
            again = change(tables, error)
            if isinstance(again, int):
                actions = np.array(actions)
                actions[error.table] = again
                return true_step(tables, actions, **options)
            raise

    return {"engine.step": step}


def refuse_takes(tables: np.ndarray, actions: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    for row in np.flatnonzero(np.asarray(actions) == TAKE):
        raise IllegalAction(int(row), 0, TAKE, [], "offer")
    return true_step(tables, actions, **options)


class Counting:
    """A step that writes down how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, tables: np.ndarray, actions: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        points, over = true_step(tables, actions, **options)
        self.calls = (self.calls + 1) % 1000
        acted = np.flatnonzero((np.asarray(actions) != engine.NO_ACTION) & (over == GOING_ON))
        tables["num_turns"][acted] = self.calls
        return points, over


def no_redeal(tables: np.ndarray, actions: Any, redeal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    return true_step(tables, actions)


def forgetful_replay(line: str) -> Iterator[np.ndarray]:
    for tables in true_replay(line):
        tables["declined"] = 0
        yield tables


def hasty_record(tables: np.ndarray, row: int = 0) -> Any:
    """A record without the first move."""
    record = table_record(tables, row)
    return dataclasses.replace(record, hands=[dataclasses.replace(record.hands[0], moves=record.hands[0].moves[1:])])


def sized_deals(rules: Rules, size: int, *, seed: int = 0, **options: Any) -> np.ndarray:
    """Deals that depend on the number of tables."""
    return true_new(rules, size, seed=seed + size, **options)


def deal_with(change: Change) -> dict[str, Any]:
    """Deals after which the tables that were dealt are changed."""

    def deal(tables: np.ndarray, rows: Any = None) -> None:
        true_deal(tables, rows)
        for row in range(tables.size) if rows is None else rows:
            change(tables[row])

    return {"engine.deal": deal}


def throw_twice(tables: np.ndarray, *_: np.ndarray) -> None:
    """The mover has thrown a card before it chooses one."""
    for row in np.flatnonzero(tables["phase"] == THROW):
        table = tables[row]
        card = testing.from_mask(int(table["hands"][table["mover"]]))[0]
        table["hands"][table["mover"]] ^= np.uint64(1) << np.uint64(card)
        table["known"] &= table["hands"]
        table["pile"][table["pile_size"]] = card
        table["pile_size"] += 1


def renamed(phase: int, other: int) -> Change:
    """A change of one phase for another."""
    return put("phase", lambda tables: np.where(tables["phase"] == phase, other, tables["phase"]))


def flip_waiting(tables: np.ndarray, actions: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    points, over = true_step(tables, actions, **options)
    tables["num_turns"][np.asarray(actions) == engine.NO_ACTION] ^= 1
    return points, over


def flip_first(tables: np.ndarray, *_: np.ndarray) -> None:
    if tables["phase"][0] != OVER:
        tables["num_turns"][0] ^= 1


class Homesick:
    """A step that exchanges the points of tables that are not where they were dealt."""

    def __init__(self) -> None:
        self.keys = true_new("plus20", 32, seed=1)["key"]

    def __call__(self, tables: np.ndarray, actions: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        points, over = true_step(tables, actions, **options)
        if tables.size == self.keys.size:
            points[tables["key"] != self.keys] *= -1
        return points, over


def win_before_the_end(tables: np.ndarray, actions: np.ndarray, points: np.ndarray, over: np.ndarray) -> None:
    points[over == GOING_ON] = [1, -1]


def end_matches(tables: np.ndarray, actions: np.ndarray, points: np.ndarray, over: np.ndarray) -> None:
    over[over == engine.HAND_ENDED] = engine.EPISODE_ENDED


def points_change(change: Callable[[np.ndarray], object]) -> dict[str, Step]:
    return after_step(lambda tables, actions, points, over: change(points))


def over_change(change: Callable[[np.ndarray], object]) -> dict[str, Step]:
    return after_step(lambda tables, actions, points, over: change(over))


def scored(table: np.void) -> bool:
    return table["ending"] not in (DEAD, TRUNCATED)


def unscored(table: np.void) -> bool:
    return not scored(table)


def knocked(table: np.void) -> bool:
    return table["ending"] == KNOCKED


def bare_knock(table: np.void) -> bool:
    return knocked(table) and not table["layoffs"].any()


def ginned(table: np.void) -> bool:
    return table["ending"] == GINNED


def with_layoffs(table: np.void) -> bool:
    return scored(table) and bool(table["layoffs"].any())


def loose_cards(table: np.void) -> int:
    """The defender's cards that it has not laid."""
    defender = 1 - table["knocker"]
    laid = [*table["melds"][defender].tolist(), *table["layoffs"].tolist()]
    return int(table["final_hands"][defender]) & ~sum(laid)


def take_back(table: np.void) -> None:
    """The layoffs have gone back to the hand, and count."""
    table["deadwood"][1 - table["knocker"]] += sum(testing._points(int(cards)) for cards in table["layoffs"])
    table["layoffs"] = 0


def break_meld(table: np.void) -> None:
    """The knocker has one meld less, which counts."""
    knocker = table["knocker"]
    meld = int(table["melds"][knocker].max())
    table["deadwood"][knocker] += testing._points(meld)
    table["melds"][knocker][table["melds"][knocker] == meld] = 0


def knockers_meld(meld: int | Callable[[np.void], int]) -> Change:
    """A change of the knocker's first meld."""

    def change(table: np.void) -> None:
        table["melds"][table["knocker"], 0] = meld(table) if callable(meld) else meld

    return change


def first_layoff(cards: Callable[[np.void], int]) -> Change:
    """A change of what is laid off on the knocker's first meld."""

    def change(table: np.void) -> None:
        table["layoffs"][0] = cards(table)

    return change


# Without the check of turns, which finds some things that others find as well.
NO_TURNS = {"testing._RulesRun.check_turn": lambda *_: None}
PACK = np.uint64((1 << 52) - 1)
MANUAL = preset("openspiel")
ASCENDING = preset("cardpuzzle", layoffs="ascending")
FREE = preset("cardpuzzle", knock_limit=100)
FEW_DRAWS = preset("cardpuzzle", draw_cap=2)

# How the message begins, what is broken, and under which rules.
BROKEN: tuple[tuple[str, dict[str, Any], Rules | str], ...] = (
    ("cards: hands, pile", after_step(lambda t, *_: np.copyto(t["pile"][:, 0], t["deck"][:, 0])), "plus20"),
    ("cards: a card is known", after_step(put("known", lambda t: ~t["hands"])), "plus20"),
    ("cards: a hand has", after_step(throw_twice) | {"testing._books_after": lambda *_: {}}, "plus20"),
    ("cards: a card that is laid down", after_step(put("laid", lambda t: PACK)), "plus20"),
    ("cards: a card is laid down twice", after_step(put("laid", lambda t: t["hands"][:, :, None])), "plus20"),
    # The mask and what is accepted.
    ("legal actions: the mask is int64", {"engine.legal": lambda t: true_legal(t).astype(np.int64)}, "plus20"),
    ("legal actions: the mask is int8 of shape", {"engine.legal": lambda t: true_legal(t)[:, :-1]}, "plus20"),
    ("legal actions: the mask is not", masks_with(lambda t, mask: np.multiply(mask, 2, out=mask)), "plus20"),
    ("legal actions: the player to move", masks_with(lambda t, mask: mask.fill(0)), "plus20"),
    (
        "legal actions: the hand is over",
        masks_with(lambda t, mask: np.copyto(mask[:, 0], 1, where=t["phase"] == OVER)),
        "plus20",
    ),
    ("legal actions: mask and rules differ in: discard", other_rules(rediscard=True), "luciano"),
    ("legal actions: mask and rules differ in: discard", other_rules(rediscard=False), "plus20"),
    ("legal actions: mask and rules differ in: .*knock", show(KNOCK + 51, THROW), "plus20"),
    (
        "legal actions: ('meld .*' .* is refused, and the mask|mask and rules differ in: meld)",
        show(MELD + 184, DEFEND),
        MANUAL,
    ),
    ("legal actions: legal_actions", {"engine.legal_actions": lambda t, row: [PASS, DRAW]}, "plus20"),
    ("legal actions: 'take'", {"engine.step": refuse_takes}, "plus20"),
    ("illegal actions: the refusal tells", refusing(lambda t, error: setattr(error, "seat", 7)), "plus20"),
    ("illegal actions: .* is accepted, and the mask", refusing(lambda t, error: error.legal[0]), "plus20"),
    ("illegal actions: .* was refused, and has", refusing(lambda t, error: add("num_turns", 1)(t)), "plus20"),
    ("illegal actions: table", refusing(lambda t, error: setattr(error, "table", 0)), "plus20"),
    ("illegal actions: action 449, .* is accepted", refusing(lambda t, error: error.legal[0], least=2), MANUAL),
    ("illegal actions: a refused action at one", refusing(lambda t, error: add("num_turns", 1)(t), least=2), "plus20"),
    # What seats see.
    (
        "views: the mask shown",
        look_with(lambda t, seen, masks: np.copyto(masks[:, PASS], 1 - masks[:, PASS])),
        "plus20",
    ),
    (
        "views: a seat does not see",
        observe_with(lambda t, seen: np.copyto(seen["hand"], seen["opponent_known"])),
        "plus20",
    ),
    ("views: a seat has drawn a card", observe_with(lambda t, seen: seen["drawn"].fill(51)), "plus20"),
    ("views: look and observe", look_with(lambda t, seen, masks: np.copyto(seen[:, 0], 1 - seen[:, 0])), "plus20"),
    ("observation space: number", louder(), "plus20"),
    ("observation space: number 0 .* is nan", look_with(lambda t, seen, masks: seen[:, 0].fill(np.nan)), "plus20"),
    (
        "hidden cards: seat . can tell from 'own_points'",
        observe_with(lambda t, seen: np.copyto(seen["own_points"], t["deck"][:, 51])),
        "plus20",
    ),
    (
        "hidden cards: a seat can tell from its observation",
        look_with(lambda t, seen, masks: np.copyto(seen[:, 0], t["deck"][:, 51] % 2)),
        "plus20",
    ),
    (
        "hidden cards: a seat can tell from its mask",
        masks_with(hide_draw) | {"testing._legal_by_rules": hide_draw_by_rules},
        "eaai",
    ),
    # Moves.
    (
        "zero sum: the points of the two seats",
        points_change(lambda points: np.add(points, [1, 0], out=points)),
        "plus20",
    ),
    ("zero sum: the points of the step", points_change(lambda points: np.multiply(points, 2, out=points)), "plus20"),
    ("moves: points are won before", after_step(win_before_the_end), "plus20"),
    ("moves: step and phase disagree", over_change(lambda over: over.fill(GOING_ON)), "plus20"),
    ("moves: a move was not kept", after_step(add("num_moves", -1)), "plus20"),
    ("moves: a move has changed 'limit'", after_step(add("limit", 1)), "plus20"),
    ("moves: a move has changed 'deck'", after_step(put("deck", lambda t: t["deck"][:, ::-1])), "plus20"),
    ("moves: a move has changed the hand", after_step(put("hands", lambda t: t["hands"][:, ::-1])), "plus20"),
    ("moves: a draw was not counted", after_step(add("draws", 1)), "plus20"),
    ("moves: a draw was not counted", after_step(add("stock_at", 1)), "plus20"),
    ("moves: 'takes' is not what", after_step(add("takes", 1)), "plus20"),
    ("moves: 'swaps' is not what", after_step(put("swaps", 0)), "plus20"),
    ("moves: 'thrown' is not what", after_step(put("thrown", 0)), "plus20"),
    ("moves: 'declined' is not what", after_step(put("declined", 0)), "plus20"),
    ("moves: 'pile_size' is not what", after_step(add("pile_size", 1)), "plus20"),
    ("moves: 'taken' is not what", after_step(put("taken", -1)), "plus20"),
    ("moves: 'drawn' is not what", after_step(put("drawn", -1)), "plus20"),
    ("moves: after 'pass' .* comes phase 'draw'", after_step(renamed(DRAW_STOCK, DRAW_ANY)), "plus20"),
    ("moves: after 'discard .* comes phase 'draw-stock'", after_step(renamed(DRAW_ANY, DRAW_STOCK)), "plus20"),
    (
        "moves: after 'knock .* comes phase 'lay-off' of seat .; expected 'declare'",
        other_rules(knocker_melds="auto"),
        MANUAL,
    ),
    (
        "length: a hand goes on after 47 moves",
        after_step(renamed(DEFEND, LAY_OFF)) | NO_TURNS,
        preset("openspiel", draw_cap=10),
    ),
    ("length: a hand has more than 2 draws", other_rules(draw_cap=200) | NO_TURNS, FEW_DRAWS),
    ("length: the stock is below 5", other_rules(stock_floor=0) | NO_TURNS, preset("plus20", stock_floor=5)),
    ("length: 3 takes, and play", other_rules(take_cap=None) | NO_TURNS, preset("plus20", take_cap=3)),
    ("length: 1 swaps, and play", other_rules(swap_cap=None) | NO_TURNS, preset("plus20", swap_cap=1)),
    # Copies and batches.
    ("copies: a table without an action", {"engine.step": flip_waiting}, "plus20"),
    ("copies: a copy does not play on", {"engine.step": Counting()}, "plus20"),
    ("copies: a table plays another way in another row", after_step(flip_first), "plus20"),
    ("copies: points or ends differ", {"engine.step": Homesick()}, "plus20"),
    ("copies: to deal in the step differs", {"engine.step": no_redeal}, "plus20"),
    ("batches: a table plays another way in a batch of", {"engine.new_tables": sized_deals}, "plus20"),
    # Results.
    ("results: the hands of the result", at_ends(put("final_hands", 0)), "plus20"),
    ("results: the number of turns", at_ends(add("num_turns", 1)), "plus20"),
    ("results: the deadwood of an unplayed", at_ends(add("deadwood", 1), unscored), "plus20"),
    ("results: somebody has knocked or won", at_ends(put("knocker", 0), unscored), "plus20"),
    ("results: an unplayed hand has points", at_ends(put("points", 5), unscored), "plus20"),
    ("results: nothing can be laid off", at_ends(put("layoffs", 1), unscored), "plus20"),
    ("results: the hand is dead without", other_rules(stock_floor=9) | NO_TURNS, "plus20"),
    ("results: the hand is truncated before", other_rules(draw_cap=4) | NO_TURNS, "plus20"),
    ("results: the knocker is not who", at_ends(put("knocker", lambda t: 1 - t["knocker"]), scored), "plus20"),
    ("results: 2S 3S is no meld", at_ends(knockers_meld(6), scored), "plus20"),
    (
        "results: .* is not in the hand, or laid twice",
        at_ends(knockers_meld(lambda t: int(t["melds"][t["knocker"], 1])), scored),
        "plus20",
    ),
    ("results: cards are laid off on a gin", at_ends(first_layoff(loose_cards), ginned), "plus20"),
    (
        "results: .*, laid off, is not in the hand",
        at_ends(first_layoff(lambda t: int(t["final_hands"][t["knocker"]])), knocked),
        "plus20",
    ),
    ("results: .* does not fit", at_ends(first_layoff(loose_cards), bare_knock), "plus20"),
    ("results: the deadwood is not what is left", at_ends(add("deadwood", 1), scored), "plus20"),
    ("results: the knocker has more than 10", at_ends(break_meld, bare_knock), "plus20"),
    ("results: big gin is not eleven", at_ends(put("ending", BIG_GINNED), bare_knock), "plus20"),
    ("results: gin is to have nothing left", at_ends(put("ending", GINNED), bare_knock), "plus20"),
    ("results: the engine leaves the knocker more", at_ends(break_meld, bare_knock), FREE),
    ("results: the engine leaves the defender", at_ends(take_back, with_layoffs), "plus20"),
    ("results: .* could still be laid off", at_ends(take_back, with_layoffs), ASCENDING),
    ("results: ending, winner and points", other_rules(gin_bonus=24), "plus20"),
    ("results: ending, winner and points", other_rules(undercut_bonus=21), "plus20"),
    ("results: ending, winner and points", other_rules(big_gin_bonus=30), preset("cardpuzzle", knock_limit=0)),
    ("results: ending, winner and points", other_rules(tie="undercut"), "plus20"),
    (
        "results: ending, winner and points",
        other_rules(double_spades="deadwood"),
        preset("plus20", oklahoma=True, double_spades="all"),
    ),
    # Records.
    ("records: the record of the hand leads", {"engine.replay": forgetful_replay}, "plus20"),
    ("records: the record of the hand cannot", {"testing.table_record": hasty_record}, "plus20"),
    # Matches and deals.
    ("matches: the scores are not", at_ends(add("scores", 1)), "plus20"),
    ("matches: the match winner is 0; expected -1", at_ends(put("match_winner", 0), unscored), "plus20"),
    ("matches: the match winner is -1; expected", other_rules(target=1000), "plus20"),
    ("matches: the step says", over_change(lambda over: np.copyto(over, 2, where=over == 1)), "plus20"),
    ("deals: the deck is not the pack", deal_with(lambda t: np.copyto(t["deck"][:2], t["deck"][0])), "plus20"),
    ("deals: 'hands' of a new hand", deal_with(put("hands", lambda t: t["hands"][::-1])), "plus20"),
    (
        "deals: 'dealer' of a new hand is 0; expected \\(1,\\)",
        other_rules(first_dealer=0),
        preset("plus20", first_dealer=1),
    ),
    ("deals: 'dealer' of a new hand", other_rules(next_dealer="same"), "plus20"),
    ("deals: 'dealer' of a new hand", other_rules(next_dealer="alternate"), "luciano"),
    ("deals: 'limit' of a new hand", other_rules(oklahoma=False), preset("plus20", oklahoma=True)),
    ("deals: 'doubled' of a new hand is True", other_rules(double_spades="all"), preset("plus20", oklahoma=True)),
    *(
        (f"deals: '{field}' of a new hand is", deal_with(put(field, 3)), "plus20")
        for field in ("stock_at", "phase", "scores", "match_winner", "draws", "takes", "swaps", "num_moves")
    ),
    ("deals: 'pile' of a new hand is", deal_with(put("pile_size", 0)), "plus20"),
    ("deals: 'mover' of a new hand is", deal_with(put("mover", lambda t: t["dealer"])), "plus20"),
    ("deals: 'hand_number' of a new hand is", deal_with(add("hand_number", 1)), "plus20"),
)


@pytest.mark.parametrize(("message", "broken", "rules"), BROKEN, ids=[message for message, _, _ in BROKEN])
def test_broken_rules_fail(
    message: str, broken: dict[str, Any], rules: Rules | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for target, function in broken.items():
        monkeypatch.setattr(f"gin_env.{target}", function)
    with pytest.raises(ConformanceError, match=f"^{message}"):
        check_rules(rules, hands=300, seed=1, tables=32)


def test_message_tells_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The position, and a call that fails in the same way."""
    monkeypatch.setattr("gin_env.engine.new_tables", other_rules(gin_bonus=24)["engine.new_tables"])
    with pytest.raises(ConformanceError) as caught:
        check_rules(preset("plus20", target=33), hands=300, seed=4, tables=20)
    error = caught.value
    assert isinstance(error, AssertionError)
    assert (error.check, error.reproduce) == (
        "results",
        "check_rules('plus20:target=33', hands=300, seed=4, tables=20)",
    )
    assert str(error).startswith("results: ending, winner and points are")
    assert str(error).endswith(f"reproduce with: {error.reproduce}")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    for part in ("\ntable ", " to move\nrecord: gin1 plus20:", " deck="):
        assert part in str(error)
    with pytest.raises(ConformanceError) as again:
        eval(error.reproduce, {"check_rules": check_rules})
    assert str(again.value) == str(error)


# ----------------------------------------------------------------------------------------------------- broken agents

Act = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
uniform = Uniform().act


def playing(act: Act) -> Any:
    """An agent that acts so."""
    agent = Uniform()
    agent.act = act  # type: ignore[method-assign]
    return agent


def never_knocks_twice(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    """Illegal where only the knock of the first legal discard is."""
    return np.where(mask[:, KNOCK:107].any(axis=1), KNOCK + 0, uniform(view, mask, rng))


def changes(name: str) -> Act:
    """An act that writes into one of its arguments."""

    def act(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        chosen = uniform(view, mask, rng)
        if name == "view":
            view["draws"] += 1
        elif name == "mask":
            mask[0, 0] ^= 1
        else:
            rng += np.uint64(1)
        return chosen

    return act


def own_randomness(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    return uniform(view, mask, np.random.default_rng().integers(1 << 60, size=rng.size, dtype=np.uint64))


class Moody:
    """Plays the first legal action and the last one in turns."""

    name = "moody"

    def __init__(self) -> None:
        self.calls = 0

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        self.calls += 1
        return mask.argmax(axis=1) if self.calls % 2 else mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)


def by_row(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    """Randomness by the place in the batch."""
    return uniform(view, mask, np.arange(rng.size, dtype=np.uint64))


def by_size(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    return uniform(view, mask, rng + np.uint64(rng.size // 60))


def by_loneliness(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    return uniform(view, mask, rng + np.uint64(rng.size == 1))


def peeks(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    """Looks into the tables of whoever asks."""
    tables = sys._getframe(1).f_locals["tables"]
    next_card = tables["deck"][np.arange(tables.size), np.minimum(tables["stock_at"], 51)]
    return uniform(view, mask, next_card.astype(np.uint64))


def raises(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    raise RuntimeError("out of ideas")


def lonely_scalar(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    return uniform(view, mask, rng).squeeze()


BROKEN_AGENTS: dict[str, tuple[Act, str]] = {
    "illegal": (never_knocks_twice, "legal: act chose 'knock AS' \\(action 55\\); legal: discard"),
    "no such action": (lambda view, mask, rng: uniform(view, mask, rng) - 200, "legal: act chose action -.* not exist"),
    "too large": (lambda view, mask, rng: np.full(rng.size, NUM_ACTIONS), "legal: act chose 'meld AH AD AC'"),
    "view": (changes("view"), "inputs: act has changed its argument 'view'"),
    "mask": (changes("mask"), "inputs: act has changed its argument 'mask'"),
    "rng": (changes("rng"), "inputs: act has changed its argument 'rng'"),
    "list": (lambda view, mask, rng: uniform(view, mask, rng).tolist(), "shape: act returned <class 'list'>"),
    "floats": (lambda view, mask, rng: uniform(view, mask, rng) * 1.0, "shape: act returned float64 of shape"),
    "mask of actions": (lambda view, mask, rng: mask, "shape: act returned int8 of shape"),
    "one for all": (lambda view, mask, rng: uniform(view, mask, rng)[:1], "shape: .* of shape \\(1,\\); expected an"),
    "scalar": (lonely_scalar, "shape: act returned int64 of shape \\(\\); expected an array of 1 integers"),
    "own randomness": (own_randomness, "keys: asked again with the same keys, act chose"),
    "memory": (Moody().act, "keys: asked again with the same keys, act chose"),
    "row": (by_row, "batches: in another order of rows, act chose"),
    "size": (by_size, "batches: in a part of the batch, act chose"),
    "alone": (by_loneliness, "batches: for a row alone, act chose"),
    "peeks": (peeks, "hidden cards: with the cards that its seat cannot see in other places, act chose"),
    "raises": (raises, "act: act raised RuntimeError: out of ideas"),
}


@pytest.mark.parametrize("name", BROKEN_AGENTS)
def test_broken_agents_fail(name: str) -> None:
    act, message = BROKEN_AGENTS[name]
    with pytest.raises(ConformanceError, match=f"^({message})"):
        check_agent(playing(act), "plus20", manual=False, hands=200, tables=60)


@pytest.mark.parametrize("wrong", [None, "", 7])
def test_an_agent_has_a_name(wrong: Any) -> None:
    agent = Uniform()
    agent.name = wrong
    with pytest.raises(ConformanceError, match="name: the agent's name is"):
        check_agent(agent)


def test_an_agent_may_be_for_automatic_rules_only() -> None:
    """One that knows the first 108 actions alone is found out where melds are laid by hand."""
    agent = playing(lambda view, mask, rng: mask[:, :NUM_ACTIONS].argmax(axis=1))
    check_agent(agent, "plus20", manual=False, hands=50)
    with pytest.raises(ConformanceError, match="legal: act chose 'pass'") as caught:
        check_agent(agent, "plus20", hands=50, seed=3)
    assert caught.value.reproduce == (
        "check_agent(agent, 'plus20:wall=knock,knocker_melds=manual,layoffs=manual,defender_melds=manual', "
        "manual=False, hands=50, seed=3, tables=64)"
    )
    with pytest.raises(ConformanceError) as again:
        eval(caught.value.reproduce, {"check_agent": check_agent, "agent": agent})
    assert str(again.value) == str(caught.value)
