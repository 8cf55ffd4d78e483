"""The strategist does what its docstring says, restated here; each term moves choices the way its advice says."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents
from agents.strategist import DEFAULTS, TERMS, StrategistAgent, outs
from gin_env import engine
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, NUM_ACTIONS, PASS, TAKE, action_name
from gin_env.cards import NUM_CARDS, cards_text, from_mask, parse_cards, to_mask
from gin_env.rules import preset
from gin_env.tables import DECLARE, DRAW_ANY, DRAW_STOCK, THROW, WALL, WALL_THROW
from gin_env.testing import check_agent
from gin_env.view import OPPONENT, OWN, VIEW_DTYPE, View, observe
from tests import reference
from tests.test_agents import keys, played

RESULTS = Path(__file__).resolve().parent.parent / "experiments" / "results"
THREES = [meld for meld in reference.MELDS if meld.bit_count() == 3]
RUNS_OF_THREE = [meld for meld in THREES if not reference.IS_SET[meld]]
CLOSE = 1e-9  # what rounding may do to a sum of terms
# Every term counts, with weights like nobody's.
ODD = (
    "strategist:loose=3,high=0.5,outs=2,extend=1.25,windows=0.75,low=3,gone=4,held=1.5,feed=9,hold=2,safe=1,"
    "declined=2.5,meld=2,lower=3,stock=1,hope=0.25,knock=14,care=2,far=1.5,layoffs=0.5,gin=1,thin=2"
)


# -------------------------------------------------------------------------------------------------------------- outs


def restated_outs(hand: int, unseen: int) -> int:
    """Returns the unseen cards outside a hand that make a meld of three with two of its cards."""
    return to_mask(
        card
        for card in from_mask(unseen & ~hand)
        if any(meld >> card & 1 and not meld & ~(hand | 1 << card) for meld in THREES)
    )


def cards(names: str) -> int:
    return to_mask(parse_cards(names))


@pytest.mark.parametrize(
    ("hand", "gone", "expected"),
    [
        ("7H 7S 8H", "", "6H 9H 7D 7C"),
        ("KS KH", "", "KD KC"),
        ("JS JH", "JD JC", ""),
        ("4S 5S 6S", "", "3S 7S"),
        ("QD KD", "", "JD"),
        ("AC 3C", "", "2C"),
    ],
)
def test_outs_of_shapes(hand: str, gone: str, expected: str) -> None:
    found = outs(cards(hand), reference.FULL_PACK & ~cards(gone))
    assert sorted(cards_text(found).split()) == sorted(expected.split())


@given(st.sets(st.integers(0, NUM_CARDS - 1), max_size=11), st.integers(0, reference.FULL_PACK))
def test_outs_restated(hand: set[int], unseen: int) -> None:
    assert int(outs(to_mask(hand), unseen)) == restated_outs(to_mask(hand), unseen)


def test_outs_of_many_hands() -> None:
    hands = np.array([[cards("7H 7S 8H")], [cards("KS KH")]], dtype=np.uint64)
    unseen = np.array([reference.FULL_PACK, cards("6H KD")], dtype=np.uint64)
    found = outs(hands, unseen)
    assert found.dtype == np.uint64
    assert found.tolist() == [[cards("6H 9H 7D 7C"), cards("6H")], [cards("KD KC"), cards("KD")]]


# -------------------------------------------------------------------------------------------------------- restatement


def near(card: int, other: int, reach: int = 1) -> bool:
    """Whether two different cards are of one rank, or of one suit and within some ranks."""
    if card == other:
        return False
    return card % 13 == other % 13 or (card // 13 == other // 13 and abs(card - other) <= reach)


def in_runs(hand: int) -> int:
    return to_mask(
        card for meld in THREES for card in from_mask(meld) if not reference.IS_SET[meld] and not meld & ~hand
    )


def loose_cards(hand: int) -> int:
    """Returns the cards outside the melds: the arrangement with the least deadwood, of equals the first.

    In their order the sets of the lowest rank change fastest: none, then the set; of four cards the sets without the
    club, the diamond, the heart and the spade, then all four.
    """
    choices = [0]
    for rank in reversed(range(13)):
        held = [card for card in from_mask(hand) if card % 13 == rank]
        sets = [held] if len(held) == 3 else [*map(list, combinations(held, 3)), held] if len(held) == 4 else []
        choices = [before | to_mask(chosen) for before in choices for chosen in [[], *sets]]
    rests = [hand & ~sets & ~in_runs(hand & ~sets) for sets in choices]
    return min(rests, key=reference.points)


class Restated(NamedTuple):
    """What a strategist with some weights knows at a decision."""

    v: np.void
    w: dict[str, float]

    @property
    def pile(self) -> int:
        return to_mask(self.v["pile"][: self.v["pile_size"]])

    @property
    def unseen(self) -> list[int]:
        seen = int(self.v["hand"]) | int(self.v["opponent_known"]) | self.pile
        return from_mask(int(self.v["rules"]["pack"]) & ~seen)

    def chance(self, card: int) -> float:
        """How likely the opponent holds a card."""
        known = from_mask(self.v["opponent_known"])
        hidden = int(self.v["opponent_cards"]) - len(known)
        return 1.0 if card in known else hidden / len(self.unseen) if card in self.unseen else 0.0

    @property
    def own_draws(self) -> int:
        draws, phase = int(self.v["draws"]), int(self.v["phase"])
        return -(-draws // 2) if phase in (THROW, WALL_THROW) else (draws + 1 + (phase == WALL)) // 2

    def kept(self, hand: int) -> float:
        w, unseen, known = self.w, self.unseen, from_mask(self.v["opponent_known"])
        loose = loose_cards(hand)
        ranks = Counter(card % 13 for card in from_mask(loose))
        completing = from_mask(restated_outs(loose, to_mask(unseen)))
        extending = [card for card in from_mask(restated_outs(hand, to_mask(unseen))) if card not in completing]
        runs = [run for run in RUNS_OF_THREE if not run & ~(loose | to_mask(unseen))]
        cost = w["loose"] * loose.bit_count() + w["high"] * reference.points(loose)
        cost -= w["outs"] * len(completing) + w["extend"] * len(extending)
        cost -= w["windows"] * sum((run & loose).bit_count() for run in runs)
        if reference.points(loose) <= self.v["limit"] + 10:
            cost -= w["low"] * sum(card % 13 <= 2 for card in from_mask(loose))
        for card in from_mask(loose):
            cost += w["gone"] * (ranks[card % 13] > 1 and not any(card % 13 == other % 13 for other in unseen))
        for card in completing + extending:
            cost += w["held"] * any(near(card, other) for other in known)
        return cost

    def thrown(self, card: int) -> float:
        w, known = self.w, from_mask(self.v["opponent_known"])
        fed = 0.0
        for meld in THREES:
            if meld >> card & 1:
                first, second = from_mask(meld & ~(1 << card))
                fed += self.chance(first) * self.chance(second)
        cost = w["feed"] * fed + w["hold"] * sum(near(card, other, 2) for other in known)
        for term, field in (("safe", "opponent_thrown"), ("declined", "opponent_declined")):
            cost -= w[term] * sum(near(card, other) for other in from_mask(int(self.v[field]) & self.pile))
        return cost

    def threshold(self, hand: int) -> float:
        w, pack = self.w, int(self.v["rules"]["pack"])
        places = reference.open_places(hand, reference.best_arrangement(hand, pack), pack)
        gins = [card for card in self.unseen if 0 in reference.deadwood_after(hand | 1 << card).values()]
        left = int(self.v["stock"]) - int(self.v["rules"]["stock_floor"])
        return (
            max(w["knock"] - w["care"] * self.own_draws, 0)
            + w["far"] * loose_cards(hand).bit_count()
            - w["layoffs"] * sum(reference.POINTS[card] * self.chance(card) for _, card in places)
            - w["gin"] * len(gins)
            + w["thin"] * max(8 - left, 0)
        )

    def choices(self, may_take: bool) -> set[int]:
        """The actions that the docstring allows: one, or those that rounding may exchange."""
        v, w, hand, upcard = self.v, self.w, int(self.v["hand"]), int(self.v["upcard"])
        if v["phase"] == DRAW_STOCK:
            return {DRAW}
        throws = v["phase"] in (THROW, WALL_THROW)
        if throws and v["rules"]["big_gin_bonus"] >= 0 and reference.deadwood(hand) == 0:
            return {BIG_GIN}
        eleven = hand if throws else hand | 1 << upcard
        after = reference.deadwood_after(eleven)
        if not throws or not v["rules"]["rediscard"]:
            after.pop(int(v["taken"]) if throws else upcard, None)
        least = min(after.values())
        costs = {
            card: self.kept(eleven & ~(1 << card)) + self.thrown(card)
            for card, left in after.items()
            if left <= least + 10
        }
        cheapest = min(costs.values())
        best = [card for card in costs if costs[card] <= cheapest + CLOSE]
        of_least = {card: cost for card, cost in costs.items() if after[card] == least}
        knockers = [card for card in of_least if of_least[card] <= min(of_least.values()) + CLOSE]
        knocks = {least == 0}
        if 0 < least <= v["limit"]:
            thresholds = [self.threshold(eleven & ~(1 << card)) for card in knockers]
            knocks = {least <= threshold + error for threshold in thresholds for error in (-CLOSE, CLOSE)}
        if v["phase"] == WALL_THROW:
            return {KNOCK + card for card in knockers}
        if throws:
            discards = {DISCARD + card for card in best} if False in knocks else set()
            return discards | ({KNOCK + card for card in knockers} if True in knocks else set())
        if True in knocks and may_take:
            return {TAKE} if False not in knocks else {TAKE, DRAW, PASS}
        if v["phase"] == WALL:
            return {PASS}
        otherwise = DRAW if v["phase"] == DRAW_ANY else PASS
        chosen = set()
        for card in best:
            saved = reference.deadwood(hand) - after[card]
            fits = restated_outs(hand, reference.FULL_PACK)
            stock = w["stock"] + w["hope"] * len([one for one in self.unseen if fits >> one & 1])
            if saved > 0:
                stock -= w["lower"] * saved * self.own_draws / 10 + w["meld"] * (fits >> upcard & 1)
            falls = self.kept(hand) - cheapest
            chosen |= {TAKE if falls > stock + error else otherwise for error in (-CLOSE, CLOSE)}
        return chosen


RULES = pytest.mark.parametrize("rules", ["cardpuzzle", "plus20:oklahoma=true", "rummyplus:wall=knock"])
NAMES = pytest.mark.parametrize("name", ["strategist", ODD, ODD.replace("=1,", "=-1,").replace("=0.5,", "=-0.5,")])


def compare(name: str, rules: str, tables: int, steps: tuple[int, ...]) -> Counter[tuple[int, bool]]:
    """Compares the player with the restatement in the midst of hands, and counts its decisions by phase."""
    agent, kinds, clear = agents.make(name), Counter[tuple[int, bool]](), 0
    weights = {term: float(agent.weights[term][0]) for term in TERMS}
    for step in steps:
        t = played(rules, tables, step, seed=step)
        views, masks = observe(t), engine.legal(t)
        for v, mask, chosen in zip(views, masks, agent.act(views, masks, keys(tables)).tolist(), strict=True):
            if v["phase"] < DECLARE:
                allowed = Restated(v, weights).choices(mask[TAKE])
                assert chosen in allowed
                clear += len(allowed) == 1
                kinds[int(v["phase"]), chosen >= KNOCK] += 1
    assert clear > 0.8 * kinds.total()
    return kinds


@RULES
@NAMES
def test_restated(name: str, rules: str) -> None:
    kinds = compare(name, rules, 4, (0, 2, 14, 27, 40, 61))
    assert min(kinds[DRAW_ANY, False], kinds[THROW, False]) >= 3


@pytest.mark.slow
@RULES
@NAMES
def test_restated_on_many_positions(name: str, rules: str) -> None:
    kinds = compare(name, rules, 40, (0, 1, 2, 3, 9, 14, 21, 27, 40, 61, 97, 98))
    assert min(kinds[DRAW_ANY, False], kinds[THROW, False], kinds[THROW, True]) > 10


# -------------------------------------------------------------------------------------------------------------- terms


class Position(NamedTuple):
    """A decision: what one's hand, the pile and the opponent's known cards are."""

    hand: str
    upcard: str = ""  # to draw from; without it a card must be thrown
    known: str = ""
    thrown: str = ""  # by the opponent
    declined: str = ""
    draws: int = 1
    stock: int = 20

    def view(self) -> tuple[View, np.ndarray]:
        view, mask = np.zeros(1, dtype=VIEW_DTYPE), np.zeros((1, NUM_ACTIONS), dtype=np.int8)
        hand, own = cards(self.hand), parse_cards(self.declined)
        pile = [*own, *parse_cards(self.thrown), *parse_cards(self.upcard)]
        view["rules"] = preset("cardpuzzle").record()
        view["to_move"], view["phase"] = True, DRAW_ANY if self.upcard else THROW
        view["opponent_cards"], view["limit"] = 10, 10
        view["draws"], view["stock"] = self.draws, self.stock
        view["hand"], view["opponent_known"] = hand, cards(self.known)
        view["own_thrown"], view["own_declined"], view["opponent_declined"] = to_mask(own), 0, to_mask(own)
        view["opponent_thrown"] = cards(self.thrown) | cards(self.upcard)
        view["taken"] = view["drawn"] = view["pile"] = view["pile_by"] = -1
        view["pile_size"], view["upcard"] = len(pile), pile[-1] if pile else -1
        view["pile"][0, : len(pile)] = pile
        view["pile_by"][0, : len(pile)] = [OWN if card in own else OPPONENT for card in pile]
        if self.upcard:
            mask[0, [DRAW, TAKE]] = 1
        else:
            after = reference.deadwood_after(hand)
            mask[0, [DISCARD + card for card in after]] = 1
            mask[0, [KNOCK + card for card, left in after.items() if left <= 10]] = 1
        return view, mask

    def choice(self, weights: dict[str, float]) -> str:
        """Returns what the player with these weights, all others 0, plays."""
        options = ",".join(f"{term}={weights.get(term, 0)}" for term in TERMS)
        view, mask = self.view()
        action = int(agents.make(f"strategist:{options}").act(view, mask, keys(1))[0])
        assert mask[0, action]
        return action_name(action)


FOUR = "AS AH AD 2C 3C 4C 5C"  # seven melded cards
HIGH = "5S 5H 5D AC 2C 3C 4C"
PAIRS = f"{HIGH} 7S 7H KS KH"
LIGHT = f"{FOUR} 2S 3H 4D QS"  # without the queen 9 points
TEN = f"{FOUR} 7H 9D QD"


@pytest.mark.parametrize(
    ("term", "on", "others", "position", "without", "choice"),
    [
        # Without the term nothing tells cards apart, and the lowest id goes.
        ("loose", 1, {}, Position("AS 2S 3S 9H 9D 9C TS JS QS 4H 2D"), "discard AS", "discard 4H"),
        ("high", 1, {}, Position(f"{FOUR} 3S 6H 9D QD"), "discard 3S", "discard QD"),
        ("outs", 1, {}, Position(f"{FOUR} KS KH 4D QD"), "discard KS", "discard 4D"),
        ("extend", 1, {}, Position("TS JS QS KS AH AD AC 2C 7H 4D 5D"), "discard TS", "discard KS"),
        ("windows", 1, {"loose": 9}, Position(f"{FOUR} 7S 5H KH 9D"), "discard 7S", "discard KH"),
        ("low", 1, {}, Position(f"{HIGH} 2S 3H AD 9D"), "discard 2S", "discard 9D"),
        ("gone", 1, {}, Position(f"{HIGH} 9S JS JH 7D", thrown="JD JC"), "discard 9S", "discard JS"),
        (
            "held",
            1,
            {"loose": 9, "outs": 1},
            Position(PAIRS, known="QD QC"),
            "discard 7S",
            "discard KS",
        ),
        ("feed", 1, {"loose": 9}, Position(f"{FOUR} 7H 9D QD KC", known="8H 9H"), "discard 7H", "discard KC"),
        ("hold", 1, {}, Position(f"{FOUR} 7H 9D QD KC", known="8H"), "discard 7H", "discard 9D"),
        ("safe", 1, {}, Position(f"{FOUR} 7H 9D QD KC", thrown="QS"), "discard 7H", "discard QD"),
        ("declined", 1, {}, Position(f"{FOUR} 7H 9D QD KC", declined="KD"), "discard 7H", "discard QD"),
        ("meld", 2, {"stock": 1}, Position(TEN, upcard="6C"), "draw", "take"),
        ("lower", 1, {"stock": 1}, Position(TEN, upcard="2S", draws=18), "draw", "take"),
        ("stock", 3, {"high": 1}, Position(TEN, upcard="8S"), "take", "draw"),
        ("hope", 2, {"high": 1}, Position(TEN, upcard="8S"), "take", "draw"),
        ("knock", 10, {"high": 1}, Position(LIGHT), "discard QS", "knock QS"),
        ("care", 1, {"high": 1, "knock": 12}, Position(LIGHT, draws=19), "knock QS", "discard QS"),
        ("far", 2, {"high": 1, "knock": 5}, Position(LIGHT), "discard QS", "knock QS"),
        ("layoffs", 1, {"high": 1, "knock": 10}, Position(LIGHT), "knock QS", "discard QS"),
        ("gin", 2, {"high": 1, "knock": 10}, Position("AS AH AD 2C 3C 4C 9H TH JH 3D QS"), "knock QS", "discard QS"),
        ("thin", 1, {"high": 1, "knock": 5}, Position(LIGHT, stock=4), "discard QS", "knock QS"),
    ],
    ids=lambda value: value if isinstance(value, str) and value in TERMS else "",
)
def test_a_term_moves_the_choice_as_its_advice_says(
    term: str, on: float, others: dict[str, float], position: Position, without: str, choice: str
) -> None:
    assert position.choice(others) == without
    assert position.choice(others | {term: on}) == choice


def test_every_term_is_shown_above() -> None:
    (mark,) = [m for m in test_a_term_moves_the_choice_as_its_advice_says.pytestmark if m.name == "parametrize"]
    assert [case[0] for case in mark.args[1]] == list(TERMS)


@pytest.mark.parametrize(
    ("weights", "position", "choice"),
    [
        # Low cards are kept close to a knock only: here 22 points stay whatever goes.
        ({"low": 1}, Position(f"{HIGH} 2S QH JD KD"), "discard 2S"),
        # Taking for points alone is for late turns.
        ({"lower": 1, "stock": 1}, Position(TEN, upcard="2S", draws=2), "draw"),
        # A discard that lowers the deadwood and makes no meld.
        ({"meld": 2, "stock": 1}, Position(TEN, upcard="8S"), "draw"),
        # Early, care does not matter yet.
        ({"high": 1, "knock": 12, "care": 1}, Position(LIGHT, draws=1), "knock QS"),
        # The stock is not thin.
        ({"high": 1, "knock": 5, "thin": 1}, Position(LIGHT, stock=10), "discard QS"),
        # What the opponent has taken up again lies in no pile.
        ({"safe": 1}, Position(f"{FOUR} 7H 9D QD KC", thrown="QS", known="QS"), "discard 7H"),
        # Gin and big gin wait for nothing.
        ({"care": 100, "gin": 100}, Position("AS AH AD 2C 3C 4C 9H TH JH QH KD"), "knock KD"),
        # A card is taken that allows a knock.
        ({"high": 1, "knock": 10, "stock": 100}, Position(f"{FOUR} 3H 5D QS", upcard="2H"), "take"),
    ],
)
def test_limits_of_terms(weights: dict[str, float], position: Position, choice: str) -> None:
    assert position.choice(weights) == choice


# ------------------------------------------------------------------------------------------------------------- player


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20:oklahoma=true", "openspiel", "cardpuzzle:ranks=5,hand_size=4"])
@pytest.mark.parametrize("name", ["strategist", ODD])
def test_it_keeps_to_the_protocol(name: str, rules: str) -> None:
    check_agent(agents.make(name), rules, hands=60)


def test_it_plays_by_the_committed_fit() -> None:
    fit = json.loads((RESULTS / "strategist-fit.json").read_text())
    assert fit["weights"] == DEFAULTS
    assert fit["command"].startswith("ginrummy fit strategist --generations")
    against = {name: told["ci95"][0] for name, told in fit["check"]["against"].items()}
    assert against["greedy"] > 3
    assert against["early-knock"] > 0
    assert fit["check"]["deals"] >= 10_000
    assert fit["check"]["seed"] != fit["seed"]


def test_the_committed_ablation_is_of_these_weights() -> None:
    terms = json.loads((RESULTS / "strategist-terms.json").read_text())["terms"]
    assert {name: term["weight"] for name, term in terms.items()} == DEFAULTS


def test_options() -> None:
    agent = agents.make("strategist:feed=0.5,outs=0")
    assert agent.name == "strategist:outs=0,feed=0.5"
    assert {term: agent.weights[term][0] for term in TERMS} == DEFAULTS | {"outs": 0, "feed": 0.5}
    assert agents.make(f"strategist:high={DEFAULTS['high']}").name == "strategist"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"luck": 1.0}, "luck"),
        ({"outs": float("nan")}, "outs is nan; expected a finite number"),
        ({"outs": True}, "True"),
    ],
)
def test_wrong_options(options: dict[str, Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        StrategistAgent(**options)
