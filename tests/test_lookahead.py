"""The lookahead player does what its docstring says, restated here with fractions."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents
from agents.lookahead import completing
from agents.match import play_match
from gin_env import engine, melds
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE
from gin_env.cards import NUM_CARDS, from_mask, parse_cards, to_mask
from gin_env.rules import PRESETS
from gin_env.tables import DECLARE, DRAW_ANY, DRAW_STOCK, THROW, WALL, WALL_THROW
from gin_env.testing import check_agent
from gin_env.view import observe
from tests import reference
from tests.test_agents import keys, played

THREES = [meld for meld in reference.MELDS if meld.bit_count() == 3]


def left_without(hands: list[int], banned: int = -1) -> np.ndarray:
    """Returns the least deadwood of each hand once a card is thrown, another than a banned one."""
    after = melds.deadwood_after(np.array(hands, dtype=np.uint64)).astype(int)
    after[after < 0] = 1000
    if banned >= 0:
        after[:, banned] = 1000
    return after.min(axis=1)


def saved(hand: int, unseen: list[int]) -> Fraction:
    """Returns how many points the next card saves on average."""
    deadwood = reference.deadwood(hand)
    return Fraction(int((deadwood - left_without([hand | 1 << card for card in unseen])).sum()), len(unseen))


def fed(v: np.void, card: int, unseen: list[int]) -> Fraction:
    """Returns how many melds the opponent is expected to make with a card."""
    known, hidden = from_mask(v["opponent_known"]), int(v["opponent_cards"]) - int(v["opponent_known"]).bit_count()
    spurned = int(v["opponent_thrown"]) | int(v["opponent_declined"])
    total = Fraction(0)
    for pair in combinations([*known, *unseen], 2):
        if to_mask([*pair, card]) not in THREES:
            continue
        hoped = [one for one in pair if one in unseen]
        others = [other for other in from_mask(spurned) if other != card and to_mask([*pair, other]) in THREES]
        if not hoped or not others:
            # The opponent's hidden cards are any of the unseen.
            chance = Fraction(1)
            for number in range(len(hoped)):
                chance *= Fraction(hidden - number, len(unseen) - number)
            total += chance
    return total


def restated(v: np.void, mask: np.ndarray, knock: int, early: int, late: int, saving: float, feeding: float) -> int:
    """What the docstring says, for one row of a view, before a knock."""
    hand, rules, upcard = int(v["hand"]), v["rules"], int(v["upcard"])
    pile = {int(card) for card in v["pile"][: v["pile_size"]]}
    known = int(v["opponent_known"])
    unseen = [card for card in from_mask(rules["pack"]) if not (hand | known) >> card & 1 and card not in pile]
    throws = v["phase"] in (THROW, WALL_THROW)
    own_draws = -(-int(v["draws"]) // 2) if throws else (int(v["draws"]) + 1 + (v["phase"] == WALL)) // 2
    threshold = min(knock if own_draws <= early else late, int(v["limit"]))
    if v["phase"] == DRAW_STOCK:
        return DRAW
    if not throws:
        (kept,) = left_without([hand | 1 << upcard], upcard)
        if v["phase"] == WALL:
            return TAKE if mask[TAKE] and kept <= threshold else PASS
        takes = reference.deadwood(hand) - int(kept) > saved(hand, unseen)
        return TAKE if takes else DRAW if v["phase"] == DRAW_ANY else PASS
    if rules["big_gin_bonus"] >= 0 and reference.deadwood(hand) == 0:
        return BIG_GIN
    after = reference.deadwood_after(hand)
    if not rules["rediscard"]:
        after.pop(int(v["taken"]), None)
    least = min(after.values())
    if v["phase"] == WALL_THROW or least <= threshold:
        return KNOCK + max((card for card in after if after[card] == least), key=lambda card: (card % 13, card // 13))

    def value(card: int) -> Fraction:
        kept = hand & ~(1 << card)
        return after[card] - Fraction(saving) * saved(kept, unseen) + Fraction(feeding) * fed(v, card, unseen)

    return DISCARD + min(after, key=lambda card: (value(card), -(card % 13), -(card // 13)))


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20", "rummyplus:wall=knock"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lookahead", (100, 5, 0, 1.3, 2.0)),
        ("lookahead:knock=0", (0, 5, 0, 1.3, 2.0)),
        ("lookahead:knock=8,early_draws=3,late_knock=2,saving=0.5,feeding=9", (8, 3, 2, 0.5, 9.0)),
        ("lookahead:saving=0,feeding=0", (100, 5, 0, 0.0, 0.0)),
    ],
)
def test_restated(name: str, options: tuple[int, int, int, float, float], rules: str) -> None:
    agent, phases = agents.make(name), Counter[int]()
    for steps in (0, 1, 2, 9, 14, 27, 40, 61, 97):
        t = played(rules, 6, steps, seed=steps)
        views, masks = observe(t), engine.legal(t)
        for v, mask, chosen in zip(views, masks, agent.act(views, masks, keys(6)).tolist(), strict=True):
            if v["phase"] < DECLARE:
                assert chosen == restated(v, mask, *options)
                phases[int(v["phase"])] += 1
    assert min(phases[DRAW_ANY], phases[THROW]) > 8


def test_what_it_looks_at_matters() -> None:
    """Each term changes some throws, so the restatement above is one of all of them."""
    t = played("cardpuzzle", 200, 31, seed=4)
    t = t[t["phase"] == THROW]
    views, masks = observe(t), engine.legal(t)
    plain, saving, feeding, both = (
        agents.make(f"lookahead:saving={s},feeding={f}").act(views, masks, keys(t.size))
        for s, f in ((0, 0), (1.3, 0), (0, 2.0), (1.3, 2.0))
    )
    assert len({tuple(chosen) for chosen in (plain.tolist(), saving.tolist(), feeding.tolist(), both.tolist())}) == 4
    forgotten = views.copy()
    forgotten["opponent_thrown"] = forgotten["opponent_declined"] = 0
    assert (agents.make("lookahead").act(forgotten, masks, keys(t.size)) != both).any()


def test_without_terms_it_throws_as_greedy_does() -> None:
    t = played("cardpuzzle", 300, 31, seed=4)
    t = t[t["phase"] == THROW]
    views, masks = observe(t), engine.legal(t)
    chosen = [
        agents.make(name).act(views, masks, keys(t.size)) for name in ("lookahead:saving=0,feeding=0", "early-knock")
    ]
    assert (chosen[0] == chosen[1]).all()


@given(st.sets(st.integers(0, NUM_CARDS - 1), min_size=1, max_size=11))
def test_completing(cards: set[int]) -> None:
    hand = to_mask(cards)
    expected = [card for card in range(NUM_CARDS) if any(meld & ~hand == 1 << card for meld in THREES)]
    assert from_mask(completing(np.uint64(hand))) == expected


@pytest.mark.parametrize("rules", PRESETS)
def test_plays_every_preset(rules: str) -> None:
    assert check_agent(agents.make("lookahead"), rules, hands=10, tables=10).decisions > 100


def test_small_packs() -> None:
    """Where nearly all cards are seen."""
    for rules in ("cardpuzzle:ranks=5,suits=2,hand_size=3,stock_floor=0", "cardpuzzle:ranks=4,suits=2,hand_size=2"):
        assert play_match(agents.make("lookahead"), agents.make("greedy"), deals=50, rules=rules).hands_won > 0


def test_beats_the_others() -> None:
    """With little noise: many deals, each played twice."""
    for other, points in (("greedy", 3.5), ("gin-only", 1.5), ("early-knock", 0.3)):
        assert play_match(agents.make("lookahead"), agents.make(other), deals=1500).points_per_hand > points


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("lookahead:knock=2.5", "'lookahead': knock is 2.5; expected a whole number, 0 or more"),
        ("lookahead:late_knock=-1", "late_knock is -1; expected a whole number, 0 or more"),
        ("lookahead:saving=-0.5", "saving is -0.5; expected a number, 0 or more"),
        ("lookahead:depth=2", "agent 'lookahead:depth=2'.*depth"),
    ],
)
def test_wrong_options(spec: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        agents.make(spec)


def test_names_say_what_differs() -> None:
    for name in ("lookahead", "lookahead:knock=0", "lookahead:knock=8,early_draws=3,saving=0.85,feeding=0"):
        assert agents.make(name).name == name
    assert agents.make("lookahead:knock=100,saving=1.3").name == "lookahead"


def test_a_throw_near_what_the_opponent_took_is_dear() -> None:
    """Two cards alike but for what the opponent is known to hold beside one of them."""
    t = played("cardpuzzle", 1, 9, seed=9)
    v = observe(t)[0].copy()
    hand = parse_cards("4S 5S 6S 9H 9D 9C AD 2C KS QH 7D")
    v["phase"], v["hand"], v["taken"], v["pile_size"], v["draws"] = THROW, to_mask(hand), -1, 0, 30
    v["own_thrown"] = v["opponent_thrown"] = v["opponent_declined"] = 0
    mask = np.zeros((1, 108), dtype=np.int8)
    mask[0, [DISCARD + card for card in hand]] = 1
    agent = agents.make("lookahead")
    king, queen = (DISCARD + card for card in parse_cards("KS QH"))
    for known, thrown in (("JS QS", queen), ("JH TH", king)):
        v["opponent_known"] = to_mask(parse_cards(known))
        assert agent.act(np.array([v]), mask, keys(1)).tolist() == [thrown]
