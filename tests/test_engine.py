"""The engine against a plain reference, and what must hold at every table, for every seed and any batch."""

import dataclasses
import os
import pickle
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gin_env import PRESETS, IllegalAction, Rules, engine, melds, preset, view
from gin_env.actions import (
    BIG_GIN,
    DISCARD,
    DRAW,
    KNOCK,
    LAYOFF,
    MELD,
    MELDS,
    NUM_ACTIONS,
    NUM_MANUAL_ACTIONS,
    PASS,
    TAKE,
    action_name,
)
from gin_env.cards import NO_CARD, cards_text, from_mask, parse_cards, to_mask
from gin_env.rules import as_rules
from gin_env.tables import (
    BIG_GINNED,
    DEAD,
    DECLARE,
    DRAW_ANY,
    ENDINGS,
    GINNED,
    KNOCKED,
    MAX_MOVES,
    NOBODY,
    OVER,
    PHASES,
    THROW,
    TIED,
    TRUNCATED,
    UNDERCUT,
    WALL,
    WALL_THROW,
)
from tests import reference, reference_engine
from tests.hands import DRAWS, any_rules
from tests.test_melds import assert_valid_defence, in_use

SOME = {"knock", "gin", "dead"}
USUAL = {*SOME, "undercut"}


def by_hand(rules: Rules | str, **changes: Any) -> Rules:
    """Returns rules under which both players lay everything themselves."""
    manual = {"knocker_melds": "manual", "layoffs": "manual", "defender_melds": "manual"}
    return dataclasses.replace(as_rules(rules), **{**manual, **changes})


EIGHTS = Rules(ranks=8, hand_size=8, knock_limit=6)
FIVES = Rules(ranks=6, hand_size=5, knock_limit=3)
THREE_SUITS = Rules(ranks=9, suits=3, hand_size=7, knock_limit=4, tie="nothing")

# Rules to play by, and the endings that a sample must hold to be worth its name.
GAMES: dict[str, tuple[Rules, set[str]]] = {
    "cardpuzzle": (preset("cardpuzzle"), USUAL | {"big-gin"}),
    "luciano": (preset("luciano"), USUAL),
    "plus20": (preset("plus20"), USUAL | {"tie"}),
    "rummyplus": (preset("rummyplus"), USUAL | {"tie", "big-gin"}),
    "luciano-oklahoma": (preset("luciano", oklahoma=True), USUAL),
    "plus20-oklahoma": (preset("plus20", oklahoma=True, double_spades="deadwood"), USUAL),
    "double-all": (preset("rummyplus", oklahoma=True, double_spades="all"), USUAL | {"big-gin"}),
    "gin-only": (preset("cardpuzzle", knock_limit=0), {"gin", "big-gin", "dead"}),
    "limit-5": (preset("luciano", knock_limit=5, tie="nothing"), USUAL),
    "no-limit": (preset("cardpuzzle", knock_limit=100, undercut_bonus=0), {"knock", "gin", "big-gin", "undercut"}),
    "rediscard": (preset("cardpuzzle", rediscard=True), USUAL | {"big-gin"}),
    "no-bonus": (preset("cardpuzzle", gin_bonus=0, big_gin_bonus=0, undercut_bonus=0), USUAL | {"big-gin"}),
    "winner-deals": (preset("rummyplus", next_dealer="winner", first_dealer=1, target=30), USUAL),
    "same-dealer": (preset("cardpuzzle", next_dealer="same", first_dealer=0, target=60), USUAL),
    "few-draws": (preset("plus20", draw_cap=7), {"knock", "truncated"}),
    "whole-stock": (preset("cardpuzzle", stock_floor=0, draw_cap=40), USUAL | {"truncated"}),
    # Small packs. Where a hand and a card more can be laid in threes, big gin may be legal and a knock not.
    "eights": (EIGHTS, USUAL | {"big-gin"}),
    "fives": (FIVES, USUAL | {"big-gin"}),
    "three-suits": (THREE_SUITS, USUAL),
    "one-suit": (Rules(suits=1, hand_size=3, rediscard=True, stock_floor=0), {"knock", "gin", "big-gin", "dead"}),
    "two-cards": (Rules(ranks=3, suits=3, hand_size=2, knock_limit=2, stock_floor=1), {"knock", "dead", "big-gin"}),
    # Who lays what by hand: the knocker's melds, the layoffs, the defender's melds, in all ways that there are.
    "openspiel": (preset("openspiel"), USUAL),
    "eaai": (preset("eaai"), USUAL),
    "by-hand": (by_hand("cardpuzzle"), SOME | {"big-gin"}),
    "knocker-and-layoffs": (preset("luciano", knocker_melds="manual", layoffs="manual"), SOME),
    "knocker-only": (preset("cardpuzzle", knocker_melds="manual"), SOME | {"big-gin"}),
    "knocker-ascending": (preset("rummyplus", knocker_melds="manual", layoffs="ascending"), SOME | {"big-gin"}),
    "layoffs-only": (preset("rummyplus", layoffs="manual"), SOME | {"big-gin"}),
    "defender-only": (preset("cardpuzzle", layoffs="manual", defender_melds="manual"), SOME | {"big-gin"}),
    "defender-ascending": (preset("luciano", layoffs="ascending", defender_melds="manual"), SOME),
    "ascending": (preset("cardpuzzle", layoffs="ascending"), SOME | {"big-gin"}),
    # By hand, where other rules have a say.
    "oklahoma-by-hand": (by_hand("plus20:oklahoma=true,double_spades=deadwood"), SOME),
    "double-all-by-hand": (by_hand("cardpuzzle:oklahoma=true,double_spades=all"), SOME | {"big-gin"}),
    "gin-only-by-hand": (by_hand("cardpuzzle:knock_limit=0"), {"gin", "big-gin", "dead"}),
    "no-limit-by-hand": (by_hand("cardpuzzle:knock_limit=100"), {"knock", "gin", "big-gin", "undercut"}),
    "eights-by-hand": (by_hand(EIGHTS), SOME | {"big-gin"}),
    "fives-by-hand": (by_hand(FIVES, layoffs="ascending"), SOME | {"big-gin"}),
    "three-suits-by-hand": (by_hand(THREE_SUITS, wall="knock"), SOME),
    # The wall, and hands that are dead for other reasons.
    "wall": (preset("cardpuzzle", wall="knock", stock_floor=10), SOME | {"big-gin"}),
    "wall-rediscard": (preset("luciano", wall="knock", rediscard=True, stock_floor=8), SOME),
    "wall-fives": (by_hand(FIVES, wall="knock", stock_floor=9), {"knock", "dead", "big-gin"}),
    "swap-cap": (preset("plus20", swap_cap=1), SOME),
    "take-cap": (by_hand("cardpuzzle", take_cap=9), SOME | {"big-gin"}),
    # Matches of one hand.
    "one-hand": (preset("rummyplus", target=None), SOME | {"big-gin"}),
    "one-hand-by-hand": (by_hand("openspiel:target=none,next_dealer=winner,stock_floor=10"), SOME),
    "one-hand-truncated": (preset("luciano", target=None, draw_cap=9), {"knock", "gin", "truncated"}),
}
any_game = st.one_of(st.sampled_from([rules for rules, _ in GAMES.values()]), any_rules())
any_seed = st.integers(0, 2**64 - 1)

# The first example compiles the kernels, which no deadline should count.
properties = settings(max_examples=100, deadline=None)


# ---------------------------------------------------------------------------------------------------------- playing


def movers_hands(tables: np.ndarray) -> np.ndarray:
    """Returns the hand of each table's mover, (N,) uint64."""
    return tables["hands"][np.arange(tables.size), tables["mover"]]


# How a player treats the discard pile.
CAREFUL, TAKES, SWAPS = 0, 1, 2  # takes what helps; takes whatever lies there; takes it and throws it back


def choose(
    tables: np.ndarray,
    rng: np.random.Generator,
    eager: np.ndarray,
    wild: np.ndarray,
    habit: np.ndarray | int = CAREFUL,
) -> np.ndarray:
    """Returns legal actions that lean towards keeping melds, so that hands end in all ways; -1 where none is legal.

    From the knock on any meld and any layoff may be chosen, now and then the longest, and stopping early too.

    Args:
        tables: N tables.
        rng: Where chance comes from.
        eager: (N,) how likely a mover knocks where it is legal; 0 waits for big gin.
        wild: (N,) points by which the judgement of a card is off, on average.
        habit: (N,) what is done with the discard pile: CAREFUL, TAKES or SWAPS.
    """
    size, rows, phase = tables.size, np.arange(tables.size), tables["phase"]
    mask = engine.legal(tables) != 0
    score = rng.exponential(size=mask.shape) * wild[:, None]
    hands, throws = movers_hands(tables), (phase == THROW) | (phase == WALL_THROW)
    top = tables["pile"][rows, np.maximum(tables["pile_size"] - 1, 0)].astype(np.uint64)
    eleven = np.where(throws, hands, hands | np.uint64(1) << top)
    eleven = np.where(np.bitwise_count(eleven) <= 11, eleven, np.uint64(0))
    after = melds.deadwood_after(eleven)
    after[after < 0] = 1000
    score[:, DISCARD:KNOCK] -= after
    score[:, KNOCK:BIG_GIN] -= after
    knocks, gins = rng.random(size) < eager, rng.random(size) < np.maximum(eager, 0.5)
    score[:, KNOCK:BIG_GIN] += np.where(np.where(after == 0, gins[:, None], knocks[:, None]), 2000, -2000)
    score[:, BIG_GIN] += np.where(rng.random(size) < 0.8, 4000, -2000)
    after[rows, top.astype(np.int64)] = 1000
    score[:, TAKE] += melds.deadwood(np.where(throws, np.uint64(0), hands)) - after.min(axis=1) - 1.0
    score[:, TAKE] += np.where((habit != CAREFUL) & (phase == DRAW_ANY), 1000, 0)
    score[:, TAKE] += np.where(phase == WALL, rng.choice([-1000, 1000], size=size), 0)
    score[rows, DISCARD + tables["taken"]] += np.where((habit == SWAPS) & (tables["taken"] != NO_CARD), 5000, 0)
    if mask.shape[1] > NUM_ACTIONS:
        score[:, MELD:LAYOFF] += np.bitwise_count(MELDS) * rng.choice([0, 1000], size=(size, 1))
        score[:, PASS] += np.where(phase >= DECLARE, np.where(rng.random(size) < 0.15, 1_000_000, -1_000_000), 0)
    score[~mask] = -np.inf
    return np.where(mask.any(axis=1), score.argmax(axis=1), engine.NO_ACTION)


def rich_deck(rng: Random, rules: Rules, pack: Sequence[int]) -> list[int]:
    """Returns a deck that deals two hands with melds, and more cards of their kind on top of the stock."""
    hands: list[list[int]] = []
    left = rng.sample(list(pack), len(pack))
    for _ in range(2):
        wished = rng.choice(DRAWS)(rng, 10)
        left.sort(key=lambda card: card not in wished)
        hands.append(left[: rules.hand_size])
        left = left[rules.hand_size :]
    near = rng.choice(DRAWS)(rng, 20)
    left.sort(key=lambda card: rng.random() + (card not in near) * rng.random())
    return reference_engine.stacked_deck(pack, hands[0], hands[1], left)


def at_random(tables: np.ndarray, first: int, turn: int) -> np.ndarray:
    """Returns any legal action of each table, a function of the table's number and the turn; -1 where none is legal."""
    mask = engine.legal(tables)
    count = mask.sum(axis=1, dtype=np.int64)
    numbers = engine.mix_keys(turn, np.arange(first, first + tables.size)) >> np.uint64(40)
    chosen = (numbers.astype(np.int64) % np.maximum(count, 1))[:, None]
    place = np.cumsum(mask, axis=1) - 1
    return np.where(count > 0, ((place == chosen) & (mask != 0)).argmax(axis=1), engine.NO_ACTION)


def played_at_random(rules: Rules, seed: int, first: int, size: int, num_moves: int, match: bool) -> np.ndarray:
    """Returns tables after some moves, each chosen by the table's number; ended hands are followed by others."""
    tables = engine.new_tables(rules, size, seed=seed, first=first, match=match)
    for turn in range(num_moves):
        engine.step(tables, at_random(tables, first, turn), redeal=True)
    return tables


def position(rules: Rules, seed: int, num_moves: int, *, size: int = 1, match: bool = False) -> np.ndarray:
    """Returns tables after some moves, of which at most the last ended a hand."""
    tables = engine.new_tables(rules, size, seed=seed, match=match)
    rng = np.random.default_rng(seed)
    eager, wild = rng.choice([0.0, 0.3, 1.0], size=size), rng.choice([0.5, 3.0, 30.0], size=size)
    habit = rng.choice([CAREFUL, CAREFUL, CAREFUL, TAKES, SWAPS], size=size)
    for _ in range(num_moves):
        engine.deal(tables, np.flatnonzero(tables["phase"] == OVER))
        engine.step(tables, choose(tables, rng, eager, wild, habit))
    return tables


def assert_same(left: np.ndarray, right: np.ndarray) -> None:
    """Asserts that tables are equal in every field."""
    for name in left.dtype.names or ():
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def assert_conserved(tables: np.ndarray) -> None:
    """Asserts that hands, pile and stock are the pack, each card in one place, and that hands have their size."""
    rules = tables["rules"][0]
    pack = to_mask(from_mask(tables["rules"]["pack"][0]))
    places = np.arange(52)

    def mask(cards: np.ndarray, there: np.ndarray) -> np.ndarray:
        bits = np.uint64(1) << np.where(there, cards, 0).astype(np.uint64)
        return np.bitwise_or.reduce(np.where(there, bits, np.uint64(0)), axis=1)

    pile = mask(tables["pile"], places < tables["pile_size"][:, None])
    stock = mask(tables["deck"], (tables["stock_at"][:, None] <= places) & (places < rules["deck_size"]))
    hands = tables["hands"]
    sizes = np.bitwise_count(hands).astype(int)
    total = sizes.sum(axis=1) + tables["pile_size"] + rules["deck_size"] - tables["stock_at"]
    assert ((hands[:, 0] | hands[:, 1] | pile | stock) == pack).all()
    assert (total == rules["deck_size"]).all()
    assert not (tables["known"] & ~hands).any()
    # A card more between drawing and throwing, and for good with big gin or where drawing it ended the hand.
    rows = np.arange(tables.size)
    in_hand = np.arange(tables["moves"].shape[1]) < tables["num_moves"][:, None]
    big = ((tables["moves"] == BIG_GIN) & in_hand).any(axis=1)
    last = np.where(tables["num_moves"] > 0, tables["moves"][rows, np.maximum(tables["num_moves"] - 1, 0)], PASS)
    holder = np.where(big, tables["knocking"], tables["mover"])
    assert (sizes[rows, holder] == rules["hand_size"] + (big | np.isin(last, (DRAW, TAKE)))).all()
    assert (sizes[rows, 1 - holder] == rules["hand_size"]).all()
    assert_laid(tables)


def assert_laid(tables: np.ndarray) -> None:
    """Asserts that what lies on the tables comes from the hands, no card twice, and makes melds."""
    knocked = tables["knocking"] != NOBODY
    assert not tables["laid"][~knocked].any()
    assert not tables["laid_off"][~knocked].any()
    for table in tables[knocked]:
        knocker = table["knocking"]
        for seat in range(2):
            cards = in_use(table["laid"][seat]) + (in_use(table["laid_off"]) if seat != knocker else [])
            assert sum(cards) & ~int(table["hands"][seat]) == 0
            assert sum(meld.bit_count() for meld in cards) == sum(cards).bit_count()
            assert all(meld in reference.IS_SET for meld in in_use(table["laid"][seat]))
        for meld, cards in zip(table["laid"][knocker], table["laid_off"], strict=True):
            assert not cards or int(meld | cards) in reference.IS_SET


# ----------------------------------------------------------------------------------- the engine and the reference


class Comparison:
    """Plays the same moves at the engine's tables and at the reference's, and compares all that there is to see."""

    def __init__(self, rules: Rules, seed: int, size: int, match: bool) -> None:
        self.rules, self.match = rules, match
        self.tables = engine.new_tables(rules, size, seed=seed, match=match)
        self.plain = [reference_engine.Table(rules, match) for _ in range(size)]
        self.rng, self.card_rng = np.random.default_rng(seed), Random(f"{seed} decks")
        self.eager = self.wild = self.habit = np.zeros(size)
        self.seen: Counter[str] = Counter()
        for row in range(size):
            self.start(row)

    def deal(self, row: int) -> None:
        """Deals the next hand of a table, half of them with melds ready to lay."""
        if self.card_rng.random() < 0.5:
            engine.deal(self.tables, [row])
        else:
            deck = rich_deck(self.card_rng, self.rules, self.plain[row].pack)
            engine.deal(self.tables, [row], [deck])
            assert self.tables["deck"][row, : len(deck)].tolist() == deck
        self.start(row)

    def start(self, row: int) -> None:
        """Deals the engine's hand at the reference's table."""
        table, plain = self.tables[row], self.plain[row]
        dealer = plain.next_dealer()
        assert dealer in (None, table["dealer"])
        plain.deal([card for card in table["deck"].tolist() if card != NO_CARD], int(table["dealer"]))

    def compare(self) -> None:
        """Compares all tables."""
        mask = engine.legal(self.tables)
        for row in range(self.tables.size):
            self.compare_table(row, np.flatnonzero(mask[row]).tolist())

    def compare_table(self, row: int, legal: list[int]) -> None:
        """Compares one table and what is legal there."""
        table, plain = self.tables[row], self.plain[row]
        assert legal == plain.legal(), self.story(row)
        assert PHASES[table["phase"]] == plain.phase, self.story(row)
        assert (table["mover"], table["dealer"]) == (plain.mover, plain.dealer), self.story(row)
        assert (table["limit"], table["doubled"]) == (plain.limit, plain.doubled), self.story(row)
        assert table["draws"] == plain.turns, self.story(row)
        assert table["scores"].tolist() == plain.scores, self.story(row)
        assert table["match_winner"] == (NOBODY if plain.match_winner is None else plain.match_winner)
        for field in ("hands", "known", "thrown", "declined"):
            assert table[field].tolist() == [to_mask(cards) for cards in getattr(plain, field)], self.story(row)
        for field in ("taken", "drawn"):
            card = getattr(plain, field)
            assert table[field] == (NO_CARD if card is None else card), self.story(row)
        assert table["pile"][: table["pile_size"]].tolist() == plain.pile, self.story(row)
        by = [NOBODY if seat is None else seat for seat in plain.pile_by]
        assert table["pile_by"][: table["pile_size"]].tolist() == by, self.story(row)
        assert table["deck"][table["stock_at"] :].tolist()[: len(plain.stock)] == plain.stock, self.story(row)
        assert (table["takes"], table["swaps"]) == (plain.takes, plain.swaps), self.story(row)
        assert table["knocking"] == (NOBODY if plain.knocker is None else plain.knocker), self.story(row)
        assert table["knocked_with"] == (-1 if plain.left is None else plain.left), self.story(row)
        if plain.phase == "over" and self.rules.layoffs == "best":
            return  # one defence may be as good as another, see compare_result
        for seat in range(2):
            assert in_use(table["laid"][seat]) == plain.laid[seat], self.story(row)
        assert table["laid_off"].tolist() == [to_mask(cards) for cards in plain.laid_off], self.story(row)

    def compare_result(self, row: int, points: list[int], over: int) -> None:
        """Compares the end of a hand."""
        table, plain, got = self.tables[row], self.plain[row], engine.result(self.tables, row)
        expected = plain.result
        assert got is not None
        assert expected is not None
        assert got[:5] == expected[:5], self.story(row)
        assert got.turns == expected.turns
        sign = {None: 0, 0: 1, 1: -1}[expected.winner]
        assert points == [sign * expected.points, -sign * expected.points], self.story(row)
        ended = not self.match or plain.match_over
        assert over == (engine.EPISODE_ENDED if ended else engine.HAND_ENDED)
        hands = [int(hand) for hand in table["final_hands"]]
        assert hands == [to_mask(hand) for hand in plain.hands]
        assert table["moves"][: table["num_moves"]].tolist() == plain.moves
        if expected.knocker is None:
            for hand, row_melds in zip(hands, table["melds"], strict=True):
                assert tuple(in_use(row_melds)) == reference.best_arrangement(hand, to_mask(plain.pack))
            assert not table["layoffs"].any()
        else:
            defender = 1 - expected.knocker
            table_melds = table["melds"][expected.knocker]
            assert tuple(in_use(table_melds)) == expected.knocker_melds, self.story(row)
            assert np.bitwise_count(table["layoffs"]).sum() == expected.num_layoffs, self.story(row)
            if expected.defender_melds is None:
                assert_valid_defence(
                    hands[defender],
                    table_melds,
                    "gin" in expected.ending,
                    expected.deadwood[defender],
                    table["melds"][defender],
                    table["layoffs"],
                )
            else:
                assert tuple(in_use(table["melds"][defender])) == expected.defender_melds, self.story(row)
                assert tuple(table["layoffs"].tolist()[: len(expected.knocker_melds)]) == expected.layoffs
        self.seen[expected.ending] += 1
        self.seen["layoffs"] += expected.num_layoffs > 0
        self.seen["matches"] += self.match and plain.match_over
        self.seen["drawn matches"] += self.match and plain.match_over and plain.match_winner is None

    def count(self, row: int, move: int) -> None:
        """Counts what is easily missed, before a move is played."""
        plain = self.plain[row]
        self.seen[plain.phase] += 1
        if plain.phase == "declare" and move == PASS:
            hand = to_mask(plain.hands[plain.mover])
            self.seen["declared worse"] += reference.points(to_mask(plain.unlaid())) > reference.deadwood(hand)
        elif plain.phase == "lay-off" and move == PASS:
            self.seen["stopped early"] += len(plain.legal()) > 1
        elif plain.phase == "lay-off":
            slot, card = divmod(move - LAYOFF, 52)
            self.seen["not the first that fits"] += any(plain.fits(card, earlier) for earlier in range(slot))
            self.seen["chained"] += bool(plain.laid_off[slot])
        elif plain.phase == "defend" and move == PASS:
            self.seen["melds kept back"] += len(plain.legal()) > 1
        elif plain.phase == "wall":
            self.seen["refused the wall"] += move == PASS and TAKE in plain.legal()
        elif plain.phase == "throw" and move < KNOCK:
            swaps = plain.taken is not None and move == DISCARD + plain.taken
            self.seen["swapped to death"] += swaps and plain.swaps + 1 == plain.rules.swap_cap
        elif plain.phase == "draw" and move == TAKE:
            self.seen["took to death"] += plain.takes + 1 == plain.rules.take_cap

    def play(self, num_hands: int) -> None:
        """Plays until so many hands have ended, comparing after every move."""
        size, left = self.tables.size, num_hands
        fresh = np.ones(size, dtype=bool)
        while left > 0:
            self.eager = np.where(fresh, self.rng.choice([0.0, 0.2, 1.0, 1.0], size=size), self.eager)
            self.wild = np.where(fresh, self.rng.choice([0.1, 2.0, 50.0], p=[0.5, 0.4, 0.1], size=size), self.wild)
            # Without a cap such hands go on for two hundred draws.
            takes, swaps = (0.02 if cap is None else 0.2 for cap in (self.rules.take_cap, self.rules.swap_cap))
            habits = self.rng.choice([CAREFUL, TAKES, SWAPS], p=[1 - takes - swaps, takes, swaps], size=size)
            self.habit = np.where(fresh, habits, self.habit)
            self.compare()
            # A table is left alone now and then, so that they are not all in one phase.
            actions = choose(self.tables, self.rng, self.eager, self.wild, self.habit)
            actions[self.rng.random(size) < 0.1] = engine.NO_ACTION
            points, over = engine.step(self.tables, actions)
            for row in np.flatnonzero(actions != engine.NO_ACTION):
                self.count(row, int(actions[row]))
                self.plain[row].play(int(actions[row]))
            fresh = over != engine.GOING_ON
            self.compare_ended(points, over)
            left -= int(fresh.sum())

    def compare_ended(self, points: np.ndarray, over: np.ndarray) -> None:
        """Compares the hands that have just ended, and deals there."""
        for row in range(self.tables.size):
            if over[row] == engine.GOING_ON:
                assert points[row].tolist() == [0, 0]
                continue
            self.compare_table(row, engine.legal_actions(self.tables, row))
            self.compare_result(row, points[row].tolist(), int(over[row]))
            self.deal(row)

    def story(self, row: int) -> str:
        """Tells how a table came to where it is, for the message of a failure."""
        plain = self.plain[row]
        deck = self.tables["deck"][row]
        moves = ", ".join(action_name(move) for move in plain.moves)
        return f"{self.rules}\ndeck {cards_text(deck[deck >= 0])}\ndealer {plain.dealer}: {moves}"


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize(
    ("seed", "num_hands"),
    [
        pytest.param(1, 200, id="small"),
        pytest.param(2, int(os.environ.get("GINRUMMY_GAMES", "4000")), id="large", marks=pytest.mark.slow),
    ],
)
def test_engine_agrees_with_reference(name: str, seed: int, num_hands: int) -> None:
    """Hands, and matches, with every ending and every phase that the rules know in the sample."""
    rules, endings = GAMES[name]
    seen: Counter[str] = Counter()
    for match in (False, True):
        comparison = Comparison(rules, Random(f"{name} {seed} {match}").getrandbits(32), 12, match)
        # The presets twice as long as the others.
        comparison.play(num_hands // 2 if name in PRESETS else num_hands // 4)
        seen += comparison.seen
    assert endings <= set(seen), seen
    assert seen["layoffs"] >= 5 or rules.knock_limit == 0 or rules.hand_size < 7, seen
    assert seen["matches"] >= 2 or (rules.target or 0) > 60, seen
    assert to_be_seen(rules, often=num_hands >= 4000) <= set(seen), seen


def compare_under_any_rules(max_examples: int) -> None:
    """Plays a few hands under each of so many random rules."""

    @settings(max_examples=max_examples, deadline=None)
    @given(any_rules(), st.integers(0, 2**32 - 1), st.booleans())
    def compare(rules: Rules, seed: int, match: bool) -> None:
        Comparison(rules, seed, 3, match).play(4)

    compare()


def test_engine_agrees_with_reference_under_any_rules() -> None:
    compare_under_any_rules(60)


@pytest.mark.slow
def test_engine_agrees_with_reference_under_many_rules() -> None:
    compare_under_any_rules(int(os.environ.get("GINRUMMY_GAMES", "4000")) // 2)


def to_be_seen(rules: Rules, often: bool) -> set[str]:
    """Returns the phases and the special choices that a sample must hold; ``often``, those that are rare too."""
    expected, rare = {"draw", "throw"}, set()
    if rules.knocker_melds == "manual":
        expected.add("declare")
        if rules.knock_limit > 0:
            rare.add("declared worse")
    if rules.layoffs == "manual" and rules.knock_limit > 0:
        expected |= {"lay-off", "stopped early"}
        rare |= {"chained"} if rules.hand_size < 6 else {"chained", "not the first that fits"}
    if rules.defender_melds == "manual":
        expected |= {"defend", "melds kept back"}
    if rules.wall == "knock":
        expected |= {"wall", "wall-throw"}
        rare.add("refused the wall")
    if rules.swap_cap is not None:
        expected.add("swapped to death")
    if rules.take_cap is not None and rules.take_cap < 20:
        expected.add("took to death")
    if rules.knock_limit > 0 and rules.hand_size > 3:
        rare.add("undercut")
        if rules.tie == "nothing":
            rare |= {"tie"} if rules.target is not None else {"tie", "drawn matches"}
    return expected | rare if often else expected


@properties
@given(any_game, st.booleans(), st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 2))
def test_score_of_any_counts(rules: Rules, doubled: bool, knocker: int, defender: int, declared: int) -> None:
    """The reference scores whole hands; this is the arithmetic alone, with what nobody can hold."""
    doubled = doubled and rules.double_spades != "no"
    factor, bonus_factor = 1 + doubled, 1 + (doubled and rules.double_spades == "all")
    row = rules.record()[0]
    if declared > 0:
        ending, bonus = (GINNED, rules.gin_bonus)
        if declared == 2 and rules.big_gin_bonus is not None:
            ending, bonus = (BIG_GINNED, rules.big_gin_bonus)
        assert engine.score(row, doubled, ending, 0, defender) == (ending, 1, factor * defender + bonus_factor * bonus)
        return
    ending, sign, points = engine.score(row, doubled, KNOCKED, knocker, defender)
    if defender > knocker:
        assert (ending, sign, points) == (KNOCKED, 1, factor * (defender - knocker))
    elif defender == knocker and rules.tie == "nothing":
        assert (ending, sign, points) == (TIED, 0, 0)
    else:
        won = factor * (knocker - defender) + bonus_factor * rules.undercut_bonus
        assert (ending, sign, points) == (UNDERCUT, -1, won)


# --------------------------------------------------------------------------------------------------- at every table


# The last hand's result, which stays while the next one is played.
RESULT = ["ending", "knocker", "winner", "points", "num_turns", "deadwood", "melds", "layoffs", "final_hands"]


class Watched:
    """Tables at which what must hold in every game is checked at every step."""

    def __init__(self, rules: Rules, seed: int, size: int, match: bool) -> None:
        self.rules, self.match = rules, match
        self.tables = engine.new_tables(rules, size, seed=seed, match=match)
        self.rng = np.random.default_rng(seed)
        self.scores = np.zeros((size, 2), dtype=int)
        self.eager = self.rng.choice([0.0, 0.2, 1.0], size=size)
        self.wild = self.rng.choice([0.1, 2.0, 50.0], size=size)
        self.habit = self.rng.choice([CAREFUL, CAREFUL, CAREFUL, TAKES, SWAPS], size=size)

    def step(self) -> None:
        """Plays an action at every table, and deals where that ended a hand."""
        tables = self.tables
        assert_conserved(tables)
        before = {field: tables[field].copy() for field in RESULT}
        actions = choose(tables, self.rng, self.eager, self.wild, self.habit)
        assert (actions != engine.NO_ACTION).all(), "nobody can move"
        points, over = engine.step(tables, actions)
        assert_conserved(tables)
        ended = over != engine.GOING_ON
        assert ((tables["phase"] == OVER) == ended).all()
        assert (points.sum(axis=1) == 0).all()
        assert not points[~ended].any()
        winner = tables["winner"][ended]
        for seat in range(2):
            won = np.where(winner == seat, 1, np.where(winner == 1 - seat, -1, 0)) * tables["points"][ended]
            np.testing.assert_array_equal(points[ended, seat], won)
        for field in RESULT:
            np.testing.assert_array_equal(tables[field][~ended], before[field][~ended], err_msg=field)
        self.scores += np.maximum(points, 0)
        np.testing.assert_array_equal(tables["scores"], self.scores)
        self.end(np.flatnonzero(ended), over)

    def end(self, rows: np.ndarray, over: np.ndarray) -> None:
        """Checks which episodes are over, and deals the next hands."""
        tables, target = self.tables, self.rules.target
        played = ~np.isin(tables["ending"][rows], (DEAD, TRUNCATED))
        if not self.match:
            finished = np.ones(rows.size, dtype=bool)
        elif target is None:
            finished = played
        else:
            finished = tables["scores"][rows].max(axis=1) >= target
            np.testing.assert_array_equal(tables["match_winner"][rows] != NOBODY, finished)
        if self.match:
            winner = tables["match_winner"][rows[finished]]
            np.testing.assert_array_equal(winner, tables["winner"][rows[finished]])
        np.testing.assert_array_equal(over[rows], np.where(finished, engine.EPISODE_ENDED, engine.HAND_ENDED))
        self.scores[rows[finished]] = 0
        before = {field: tables[field].copy() for field in RESULT}
        engine.deal(tables, rows)
        for field in RESULT:
            np.testing.assert_array_equal(tables[field], before[field], err_msg=field)
        np.testing.assert_array_equal(tables["scores"], self.scores)
        assert (tables["match_winner"] == NOBODY).all()


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("name", GAMES)
def test_what_holds_at_every_table(name: str, match: bool) -> None:
    """Cards are conserved, points sum to zero, somebody can always move, and the last result stays."""
    watched = Watched(GAMES[name][0], 11, 16, match)
    for _ in range(100):
        watched.step()
    assert watched.tables["hand_number"].sum() > 0


@settings(max_examples=40, deadline=None)
@given(any_rules(), any_seed, st.booleans())
def test_what_holds_under_any_rules(rules: Rules, seed: int, match: bool) -> None:
    """The same, and that every hand comes to an end before its record is full."""
    watched = Watched(rules, seed, 3, match)
    for _ in range(MAX_MOVES):
        if (watched.tables["hand_number"] > 0).all():
            break
        watched.step()
    else:
        raise AssertionError("a hand without end")


def assert_mask_is_what_is_accepted(tables: np.ndarray) -> int:
    """Tries every action, and some that do not exist, at every table.

    Returns:
        How many knocks were refused only because the card may not be thrown in this turn.
    """
    refused_knocks = 0
    masks = engine.legal(tables)
    assert masks.dtype == np.int8
    num_actions = masks.shape[1]
    for row in range(tables.size):
        legal = np.flatnonzero(masks[row]).tolist()
        assert set(masks[row].tolist()) <= {0, 1}
        assert legal == engine.legal_actions(tables, row)
        assert bool(legal) == (tables["phase"][row] != OVER)
        table = tables[row : row + 1]
        before = table.tobytes()
        for action in (*range(-2, num_actions + 2), -(2**62), 2**62):
            if action == engine.NO_ACTION:
                continue
            if action in legal:
                after = table.copy()
                engine.step(after, [action])
                assert after["num_moves"] == table["num_moves"] + 1
                assert after["moves"][0, table["num_moves"][0]] == action
                continue
            with pytest.raises(IllegalAction) as caught:
                engine.step(table, [action])
            assert (caught.value.table, caught.value.action) == (0, action)
            assert caught.value.legal == tuple(legal)
            assert caught.value.seat == (table["mover"][0] if legal else NOBODY)
            # Little enough would be left, but this card may not be thrown.
            if legal and table["taken"][0] != NO_CARD and action == KNOCK + table["taken"][0]:
                left = reference.deadwood(int(movers_hands(table)[0]) & ~(1 << int(table["taken"][0])))
                refused_knocks += left <= table["limit"][0]
        assert table.tobytes() == before
    return refused_knocks


def some_of_each_kind(rules: Rules, seed: int, each: int) -> np.ndarray:
    """Returns tables in every phase that comes up, and among those with a taken card such as it may help to knock."""
    tables = engine.new_tables(rules, 32, seed=seed, match=True)
    rng = np.random.default_rng(seed)
    eager, wild = rng.choice([0.0, 0.3, 1.0], size=32), rng.choice([0.1, 3.0, 30.0], size=32)
    habit = rng.choice([CAREFUL, CAREFUL, TAKES, SWAPS], size=32)
    found: dict[tuple[int, ...], list[np.ndarray]] = {}
    for _ in range(120):
        without_taken = movers_hands(tables) & ~np.where(
            tables["taken"] >= 0, np.uint64(1) << np.maximum(tables["taken"], 0).astype(np.uint64), np.uint64(0)
        )
        small = np.bitwise_count(without_taken) <= 10
        knocks = small & (melds.deadwood(np.where(small, without_taken, 0)) <= tables["limit"])
        kinds = [tables["phase"], tables["taken"] >= 0, (tables["taken"] >= 0) & knocks]
        for row in rng.permutation(32)[:12]:
            kind = found.setdefault(tuple(int(column[row]) for column in kinds), [])
            if len(kind) < each and (not kind or rng.random() < 0.2):
                kind.append(tables[row : row + 1].copy())
        engine.deal(tables, np.flatnonzero(tables["phase"] == OVER))
        engine.step(tables, choose(tables, rng, eager, wild, habit))
    return np.concatenate([table for kind in found.values() for table in kind])


@pytest.mark.parametrize("name", GAMES)
def test_mask_is_what_is_accepted(name: str) -> None:
    """In all kinds of positions."""
    rules, _ = GAMES[name]
    refused_knocks = assert_mask_is_what_is_accepted(some_of_each_kind(rules, 6, 2 if rules.manual else 6))
    if rules.rediscard:
        assert refused_knocks == 0
    elif name in PRESETS:
        assert refused_knocks > 0


@settings(max_examples=40, deadline=None)
@given(any_rules(), any_seed, st.integers(0, 80), st.booleans())
def test_mask_is_what_is_accepted_under_any_rules(rules: Rules, seed: int, num_moves: int, match: bool) -> None:
    assert_mask_is_what_is_accepted(position(rules, seed, num_moves, size=2, match=match))


@pytest.mark.parametrize("name", [*PRESETS, "by-hand"])
@pytest.mark.parametrize("num_hands", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_masks_e16_of_many_random_hands(name: str, num_hands: int) -> None:
    """The mover can always move, what it plays is accepted, and what is masked refused; the other seat has no move."""
    rules, _ = GAMES[name]
    tables = engine.new_tables(rules, num_hands, seed=16)
    rng = np.random.default_rng(16)
    turn = 0
    while (tables["phase"] != OVER).any():
        rows = np.flatnonzero(tables["phase"] != OVER)
        tables, masks = tables[rows], engine.legal(tables[rows])
        assert masks.dtype == np.int8
        assert masks.shape == (rows.size, rules.num_actions)
        assert masks.any(axis=1).all()
        assert not view.look(tables, 1 - tables["mover"])[1].any()
        np.testing.assert_array_equal(view.look(tables, tables["mover"])[1], masks)
        actions = at_random(tables, 0, turn)
        for row in rng.integers(rows.size, size=2):
            refused = actions.copy()
            refused[row] = rng.choice(np.flatnonzero(masks[row] == 0))
            with pytest.raises(IllegalAction) as caught:
                engine.step(tables, refused)
            assert caught.value.table == row
            assert caught.value.legal == tuple(np.flatnonzero(masks[row]))
        engine.step(tables, actions)
        ended = tables[tables["phase"] == OVER]
        for seat in range(2):
            assert not ended.size or not view.look(ended, seat)[1].any()
        turn += 1


@settings(max_examples=60, deadline=None)
@given(any_game, any_seed, st.integers(1, 80))
def test_moves_are_the_record_of_the_hand(rules: Rules, seed: int, num_moves: int) -> None:
    """Deck, dealer and moves give the table back."""
    tables = position(rules, seed, num_moves)
    moves = tables["moves"][0, : tables["num_moves"][0]]
    deck = tables["deck"][0]
    replayed = engine.new_tables(rules, 1, seed=seed)
    engine.deal(replayed, decks=[deck[deck != NO_CARD]], dealers=tables["dealer"])
    for move in moves:
        engine.step(replayed, [move])
    # Not part of the hand: what was before it.
    history = {"hand_number", "ending", "knocker", "winner", "points", "num_turns", "deadwood", "melds", "layoffs"}
    over = tables["phase"][0] == OVER
    for name in tables.dtype.names:
        if name == "moves":
            np.testing.assert_array_equal(replayed[name][0, : moves.size], moves)
        elif over or name not in history | {"final_hands"}:
            if name != "hand_number":
                np.testing.assert_array_equal(replayed[name], tables[name], err_msg=name)


def test_bad_action_changes_no_table_of_the_batch() -> None:
    tables = position(preset("cardpuzzle"), 3, 14, size=9)
    good = choose(tables, np.random.default_rng(0), np.ones(9), np.ones(9))
    for row in range(9):
        bad = good.copy()
        bad[row] = PASS
        bad[8] = PASS  # the first one is named
        before = tables.tobytes()
        points, over = np.full((9, 2), 7, dtype=np.int32), np.full(9, 7, dtype=np.int8)
        with pytest.raises(IllegalAction) as caught:
            engine.step(tables, bad, redeal=True, points=points, over=over)
        assert tables.tobytes() == before
        assert (points == 7).all()
        assert (over == 7).all()
        error = caught.value
        seat, legal = int(tables["mover"][row]), engine.legal_actions(tables, row)
        assert (error.table, error.seat, error.action, error.legal) == (row, seat, PASS, tuple(legal))
        names = ", ".join(action_name(action) for action in legal)
        phase = PHASES[tables["phase"][row]]
        expected = f"table {row}: seat {seat} may not play 'pass' (action 0) in phase {phase!r}; legal: {names}"
        assert str(error) == f"{expected}\nto reproduce: {error.record}"
        # And it does.
        *_, again = engine.replay(error.record)
        for name in ("phase", "mover", "hands", "pile", "stock_at", "declined"):
            np.testing.assert_array_equal(again[name][0], tables[name][row])
    engine.step(tables, good)


def test_illegal_action_messages() -> None:
    tables = engine.new_tables("cardpuzzle", 1)
    with pytest.raises(IllegalAction, match="'discard TD' \\(action 38\\) in phase 'offer'; legal: pass, take\n"):
        engine.step(tables, [38])
    with pytest.raises(IllegalAction, match="'meld AH AD AC' \\(action 108\\) in phase 'offer'; legal: pass, take\n"):
        engine.step(tables, [108])
    with pytest.raises(IllegalAction, match="action 449, which does not exist, in phase"):
        engine.step(tables, [449])
    tables["phase"] = OVER
    with pytest.raises(IllegalAction, match="table 0: 'draw' .* is illegal: the hand is over; deal or reset first"):
        engine.step(tables, [DRAW])
    assert issubclass(IllegalAction, ValueError)


def test_illegal_action_crosses_processes() -> None:
    with pytest.raises(IllegalAction) as caught:
        engine.step(engine.new_tables("cardpuzzle", 1), [DRAW])
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert vars(error) == vars(caught.value)


# ------------------------------------------------------------------------------------------- seeds, batches, copies


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("name", ["cardpuzzle", "plus20-oklahoma", "fives", "no-limit-by-hand"])
def test_batch_size_changes_nothing(name: str, match: bool) -> None:
    """The same tables, whichever others are played beside them: deals, dealers, every move and every hand after."""
    rules, _ = GAMES[name]

    def played(first: int, size: int) -> np.ndarray:
        return played_at_random(rules, 5, first, size, 60, match)

    np.testing.assert_array_equal(
        engine.new_tables(rules, 1024, seed=5)["deck"][7:14], engine.new_tables(rules, 7, seed=5, first=7)["deck"]
    )
    whole = played(0, 1024)
    assert whole["hand_number"].max() > 0
    for first in range(0, 1024, 117):
        assert_same(whole[first : first + 7], played(first, 7))
    for first in (0, 1, 500, 1023):
        assert_same(whole[first : first + 1], played(first, 1))


@settings(max_examples=30, deadline=None)
@given(any_game, any_seed, st.booleans(), st.integers(0, 120))
def test_batch_size_changes_nothing_under_any_rules(rules: Rules, seed: int, match: bool, num_moves: int) -> None:
    whole = played_at_random(rules, seed, 0, 6, num_moves, match)
    for first, size in ((0, 1), (2, 3), (5, 1)):
        assert_same(whole[first : first + size], played_at_random(rules, seed, first, size, num_moves, match))


def test_seeds_and_table_numbers() -> None:
    tables = engine.new_tables("cardpuzzle", 1024, seed=5)
    same = engine.new_tables("cardpuzzle", 1024, seed=5)
    assert_same(tables, same)
    other = engine.new_tables("cardpuzzle", 1024, seed=6)
    for left, right in ((tables, other), (tables[1:], tables[:-1]), (tables[7:], other[:-7])):
        assert (left["deck"] != right["deck"]).any(axis=1).all()
    # Both deal first about as often.
    assert 400 < tables["dealer"].sum() < 624
    engine.deal(same)
    assert (tables["deck"] != same["deck"]).any(axis=1).all()
    assert (same["hand_number"] == 1).all()
    for seed in (0, 2**64 - 1, np.uint64(2**63)):
        assert_same(engine.new_tables("luciano", 2, seed=seed), engine.new_tables(preset("luciano"), 2, seed=int(seed)))


def test_decks_are_shuffled_evenly() -> None:
    """Each card is in each place about as often; 4 standard deviations leave room for 52 * 52 of them."""
    size = 20_000
    decks = engine.new_tables("cardpuzzle", size, seed=1)["deck"]
    assert (np.sort(decks, axis=1) == np.arange(52)).all()
    counts = np.stack([np.bincount(decks[:, place], minlength=52) for place in range(52)])
    deviation = np.sqrt(size * (1 / 52) * (51 / 52))
    assert np.abs(counts - size / 52).max() < 5 * deviation
    # Chi-square over all places, with 51 * 51 degrees of freedom.
    chi_square = ((counts - size / 52) ** 2 / (size / 52)).sum()
    assert abs(chi_square - 51 * 51) < 5 * np.sqrt(2 * 51 * 51)


def test_hand_is_a_function_of_seed_table_and_number() -> None:
    """How the hands before it went, and when it was dealt, is no matter."""
    tables = engine.new_tables("cardpuzzle", 4, seed=9)
    hurried = tables.copy()
    rng = np.random.default_rng(1)
    while (tables["hand_number"] < 3).any():
        waits = tables["hand_number"] >= 3
        actions = choose(tables, rng, np.ones(4), np.ones(4))
        actions[waits] = engine.NO_ACTION
        engine.step(tables, actions, redeal=True)
    for row in (2, 0, 0, 0, 1, 3, 1, 2, 3, 3, 2, 1):
        engine.deal(hurried, row)
    np.testing.assert_array_equal(tables["deck"], hurried["deck"])
    np.testing.assert_array_equal(tables["dealer"], hurried["dealer"])


@settings(max_examples=30, deadline=None)
@given(any_game, any_seed, st.integers(0, 60), st.booleans())
def test_copies_play_on_independently(rules: Rules, seed: int, num_moves: int, match: bool) -> None:
    tables = position(rules, seed, num_moves, size=3, match=match)
    saved = tables.copy()
    before = saved.tobytes()
    actions = choose(tables, np.random.default_rng(seed), np.ones(3), np.ones(3))
    first = engine.step(tables, actions, redeal=True)
    assert saved.tobytes() == before
    restored = saved.copy()
    second = engine.step(restored, actions, redeal=True)
    assert_same(tables, restored)
    for left, right in zip(first, second, strict=True):
        np.testing.assert_array_equal(left, right)
    # A table copied to other rows plays on there as it would have in its own.
    moved = saved[[1, 1, 0]]
    engine.step(moved, [actions[1], engine.NO_ACTION, engine.NO_ACTION], redeal=True)
    assert_same(moved[:1], tables[1:2])
    assert_same(moved[1:], saved[:2][::-1])
    engine.step(moved, [engine.NO_ACTION, actions[1], actions[0]], redeal=True)
    assert_same(moved, tables[[1, 1, 0]])
    assert saved.tobytes() == before


@properties
@given(any_game, any_seed, st.integers(0, 60))
def test_no_action_leaves_a_table(rules: Rules, seed: int, num_moves: int) -> None:
    tables = position(rules, seed, num_moves, size=3)
    before = tables.copy()
    points, over = engine.step(tables, np.full(3, engine.NO_ACTION), redeal=True)
    assert_same(tables, before)
    assert not points.any()
    assert (over == engine.GOING_ON).all()
    actions = choose(tables, np.random.default_rng(0), np.ones(3), np.ones(3))
    actions[1] = engine.NO_ACTION
    engine.step(tables, actions)
    assert_same(tables[1:2], before[1:2])


@pytest.mark.parametrize("match", [False, True])
def test_redeal_is_step_and_deal(match: bool) -> None:
    at_once = engine.new_tables(preset("rummyplus", target=40), 50, seed=2, match=match)
    later = at_once.copy()
    rng = np.random.default_rng(2)
    ended = set()
    for _ in range(120):
        actions = choose(at_once, rng, np.full(50, 0.5), np.ones(50))
        points, over = engine.step(at_once, actions, redeal=True)
        same_points, same_over = engine.step(later, actions)
        np.testing.assert_array_equal(points, same_points)
        np.testing.assert_array_equal(over, same_over)
        finished = [engine.result(later, row) for row in np.flatnonzero(over)]
        engine.deal(later, np.flatnonzero(over))
        assert_same(at_once, later)
        # The result stays while the next hand is played.
        assert finished == [engine.result(at_once, row) for row in np.flatnonzero(over)]
        assert (at_once["phase"] != OVER).all()
        ended |= set(over.tolist())
    assert ended == ({0, 1, 2} if match else {0, 2})


def test_results_are_written_where_asked() -> None:
    tables = engine.new_tables("cardpuzzle", 3)
    points, over = np.full((3, 2), 9, dtype=np.int32), np.full(3, 9, dtype=np.int8)
    for number, rules in ((NUM_ACTIONS, "cardpuzzle"), (NUM_MANUAL_ACTIONS, "eaai")):
        mask = np.full((3, number), 9, dtype=np.int8)
        assert engine.legal(engine.new_tables(rules, 3), mask) is mask
        assert np.flatnonzero(mask[0]).tolist() == [PASS, TAKE]
    got = engine.step(tables, [PASS, TAKE, engine.NO_ACTION], points=points, over=over)
    assert got[0] is points
    assert got[1] is over
    assert not points.any()
    assert not over.any()


# ------------------------------------------------------------------------------------------------- deals and matches


def test_deal() -> None:
    """One card each in turn, the non-dealer first; then the upcard; then the stock from its top."""
    deck = Random(1).sample(range(52), 52)
    for dealer in range(2):
        tables = engine.new_tables("cardpuzzle", 3, seed=1)
        before = tables.copy()
        engine.deal(tables, rows=[1], decks=[deck], dealers=[dealer])
        assert_same(tables[[0, 2]], before[[0, 2]])
        table = tables[1]
        assert table["deck"].tolist() == deck
        assert (table["dealer"], table["mover"]) == (dealer, 1 - dealer)
        assert table["hands"][1 - dealer] == to_mask(deck[0:20:2])
        assert table["hands"][dealer] == to_mask(deck[1:20:2])
        assert table["pile"][: table["pile_size"]].tolist() == [deck[20]]
        assert deck[table["stock_at"] :] == deck[21:]
        for place in range(21, 23):
            for action in (PASS, PASS, DRAW) if place == 21 else (DRAW,):
                engine.step(tables, [engine.NO_ACTION, action, engine.NO_ACTION])
            drawn = deck[place]
            assert tables["drawn"][1] == drawn
            assert int(tables["hands"][1, tables["mover"][1]]) >> drawn & 1
            engine.step(tables, [engine.NO_ACTION, DISCARD + drawn, engine.NO_ACTION])


def test_deals_several_decks() -> None:
    rng = Random(2)
    decks = [rng.sample(range(52), 52) for _ in range(2)]
    tables = engine.new_tables("luciano", 4)
    engine.deal(tables, rows=np.array([3, 1]), decks=np.array(decks), dealers=np.array([1, 0]))
    assert tables["deck"][[3, 1]].tolist() == decks
    assert tables["dealer"][[3, 1]].tolist() == [1, 0]
    assert tables["hand_number"].tolist() == [0, 1, 0, 1]
    # Without dealers it is the rules that say.
    fixed = engine.new_tables(preset("luciano", first_dealer=1), 4)
    engine.deal(fixed, rows=[0], decks=decks[0])
    assert fixed["dealer"].tolist() == [1, 1, 1, 1]


def test_small_pack_is_dealt() -> None:
    rules, _ = GAMES["three-suits"]
    tables = engine.new_tables(rules, 5)
    pack = [13 * suit + rank for suit in range(3) for rank in range(9)]
    assert from_mask(tables["rules"]["pack"][0]) == pack
    assert (np.sort(tables["deck"][:, :27], axis=1) == pack).all()
    assert (tables["deck"][:, 27:] == NO_CARD).all()
    engine.deal(tables, [0], [pack[::-1]])
    assert tables["deck"][0, :27].tolist() == pack[::-1]


@pytest.mark.parametrize("target", [1, 50, 200])
@pytest.mark.parametrize("name", PRESETS)
def test_match_goes_to_its_target(name: str, target: int) -> None:
    tables = engine.new_tables(preset(name, target=target), 8, seed=4, match=True)
    rng = np.random.default_rng(4)
    totals, finished = np.zeros((8, 2), dtype=int), 0
    while finished < 20:
        points, over = engine.step(tables, choose(tables, rng, np.ones(8), np.ones(8)))
        totals += np.maximum(points, 0)
        np.testing.assert_array_equal(tables["scores"], totals)
        reached = (totals >= target).any(axis=1)
        for row in np.flatnonzero(over):
            assert (over[row] == engine.EPISODE_ENDED) == reached[row]
            assert tables["match_winner"][row] == (totals[row].argmax() if reached[row] else NOBODY)
            assert not engine.legal_actions(tables, row)
        finished += int(reached.sum())
        totals[reached] = 0
        engine.deal(tables, np.flatnonzero(over))
        assert (tables["match_winner"] == NOBODY).all()


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("seat", [0, 1])
def test_first_dealer(seat: int, match: bool) -> None:
    """Deals every hand that is an episode, and the first hand of every match."""
    # Whoever wins a hand wins the match.
    tables = engine.new_tables(preset("cardpuzzle", first_dealer=seat, target=1), 20, match=match)
    rng = np.random.default_rng(1)
    for _ in range(150):
        first = tables["num_moves"] == 0
        if match:
            first &= ~np.isin(tables["ending"], (DEAD, TRUNCATED))
        assert (tables["dealer"][first] == seat).all()
        engine.step(tables, choose(tables, rng, np.ones(20), np.ones(20)), redeal=True)
    assert (tables["hand_number"] > 2).all()


def test_big_gin_is_declared_not_forced() -> None:
    """Eleven melded cards: any discard that the turn allows, a knock that is gin, or big gin with more points."""
    hand = parse_cards("5S 6S 7S 8S JH JD JC 2C 3C 4C")
    defender = parse_cards("KS KH KD QS QC 7D 8H 2H 3H AS")
    deck = reference_engine.stacked_deck(range(52), hand, defender, parse_cards("9S"))
    for name, bonus in (("cardpuzzle", 31), ("rummyplus", 31), ("luciano", None), ("plus20", None)):
        tables = engine.new_tables(name, 1)
        engine.deal(tables, decks=[deck], dealers=[0])
        engine.step(tables, [TAKE])
        legal = {action_name(action) for action in engine.legal_actions(tables)}
        upcard = {"9S"} if preset(name).rediscard else set()
        assert {name for name in legal if name.startswith("discard")} == {
            f"discard {card}" for card in {*cards_text(hand).split(), *upcard}
        }
        assert "knock 5S" in legal
        assert ("knock 9S" in legal) is bool(upcard)
        assert ("big-gin" in legal) is (bonus is not None)
        gin = tables.copy()
        points, _ = engine.step(gin, [KNOCK + hand[0]])
        loose = reference.deadwood(to_mask(defender))
        assert points.tolist() == [[-loose - 25, loose + 25]]
        if bonus is not None:
            points, _ = engine.step(tables, [BIG_GIN])
            assert points.tolist() == [[-loose - bonus, loose + bonus]]
            result = engine.result(tables)
            assert result is not None
            assert (result.ending, result.knocker, result.deadwood) == ("big-gin", 1, (loose, 0))
            assert result.melds[1] == ("JH JD JC", "5S 6S 7S 8S 9S", "2C 3C 4C")
            assert result.layoffs == ("", "", "")


def test_big_gin_without_a_knock_in_small_packs() -> None:
    """Six cards in two melds of three: whatever is thrown breaks one, but big gin is there to be declared."""
    rules = Rules(ranks=6, hand_size=5, knock_limit=3)
    tables = engine.new_tables(rules, 1)
    hand, defender = parse_cards("5S 5H 5D 6S 6H"), parse_cards("AS AH 2D 3D 4C")
    deck = reference_engine.stacked_deck(from_mask(tables["rules"]["pack"][0]), hand, defender, parse_cards("6D"))
    engine.deal(tables, decks=[deck], dealers=[0])
    engine.step(tables, [TAKE])
    assert engine.legal_actions(tables) == [*(DISCARD + card for card in from_mask(to_mask(hand))), BIG_GIN]
    points, _ = engine.step(tables, [BIG_GIN])
    assert points.tolist() == [[-42, 42]]


def test_result() -> None:
    """The worked example of the rules: 7 against 27 points, of which two cards worth 8 are laid off on a run."""
    knocker = parse_cards("3C 4C 5C QS QH QD 9H TH JH 7D")
    defender = parse_cards("2C 6C KS 9D AS AH AD 8S 8H 8D")
    deck = reference_engine.stacked_deck(range(52), defender, knocker, parse_cards("KH KD KC"))
    tables = engine.new_tables("cardpuzzle", 2)
    assert engine.result(tables) is None
    engine.deal(tables, rows=1, decks=[deck], dealers=[0])
    wait = engine.NO_ACTION
    for action in (PASS, PASS, DRAW, DISCARD + parse_cards("KD")[0], DRAW, KNOCK + parse_cards("KC")[0]):
        assert engine.result(tables, 1) is None
        points, over = engine.step(tables, [wait, action])
    assert points.tolist() == [[0, 0], [12, -12]]
    assert over.tolist() == [engine.GOING_ON, engine.EPISODE_ENDED]
    expected = engine.Result(
        ending="knock",
        knocker=0,
        winner=0,
        points=12,
        deadwood=(7, 19),
        melds=(("QS QH QD", "9H TH JH", "3C 4C 5C"), ("AS AH AD", "8S 8H 8D")),
        layoffs=("", "", "2C 6C"),
        turns=2,
    )
    assert engine.result(tables, 1) == expected
    assert engine.result(tables, 0) is None
    engine.deal(tables, 1)
    assert engine.result(tables, 1) == expected
    assert tables["num_moves"].tolist() == [0, 0]


def test_truncation() -> None:
    """At the cap on draws a plain discard ends the hand, a knock still counts."""
    rules = preset("cardpuzzle", draw_cap=1, next_dealer="alternate")
    knocker = parse_cards("3C 4C 5C QS QH QD 9H TH JH 7D")
    defender = parse_cards("2C 6C KS 9D AS AH AD 8S 8H 8D")
    deck = reference_engine.stacked_deck(range(52), knocker, defender, parse_cards("KH"))
    tables = engine.new_tables(rules, 2, match=True)
    engine.deal(tables, decks=[deck, deck], dealers=[0, 0])
    engine.step(tables, [TAKE, TAKE])
    points, over = engine.step(tables, [DISCARD + knocker[0], KNOCK + knocker[9]])
    assert ENDINGS[tables["ending"][0]] == "truncated"
    assert (ENDINGS[tables["ending"][1]], points[1].tolist()) == ("knock", [-9, 9])
    assert points[0].tolist() == [0, 0]
    assert over.tolist() == [engine.HAND_ENDED, engine.HAND_ENDED]
    first = engine.result(tables, 0)
    assert first is not None
    assert (first.knocker, first.winner, first.points, first.turns) == (None, None, 0, 1)
    assert first.deadwood == tuple(reference.deadwood(int(hand)) for hand in tables["final_hands"][0])
    engine.deal(tables)
    assert tables["dealer"].tolist() == [0, 1]


# ------------------------------------------------------------------------------------------------------------ errors


def test_actions_that_do_not_fit() -> None:
    tables = engine.new_tables("cardpuzzle", 2)
    before = tables.tobytes()
    for actions in ([0], [0, 0, 0], [[0, 0]], [[0], [0]], 0, []):
        with pytest.raises(ValueError, match="expected integers of shape \\(2,\\)"):
            engine.step(tables, actions)
    for actions in ([0.0, 0.0], [True, False], ["pass", "pass"], np.zeros(2, dtype=np.float32)):
        with pytest.raises(ValueError, match="expected integers"):
            engine.step(tables, actions)
    assert tables.tobytes() == before
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint64):
        engine.step(tables.copy(), np.array([PASS, TAKE], dtype=dtype))


def test_decks_that_are_not_the_pack() -> None:
    tables = engine.new_tables("cardpuzzle", 2)
    before = tables.tobytes()
    pack = list(range(52))
    for decks in (
        [pack],
        [pack, pack, pack],
        [pack[:51]] * 2,
        [[*pack[:51], 0]] * 2,
        [[*pack[:51], 52]] * 2,
        [[*pack[:51], -1]] * 2,
        [[*pack, 0]] * 2,
        [[[0]]],
        # As bytes these would be the pack.
        np.tile(np.arange(52) + 256, (2, 1)),
        np.tile(np.arange(52) + 0.5, (2, 1)),
        [[*pack[:51], 51 + 256]] * 2,
    ):
        with pytest.raises(ValueError, match="are not 2 orders of the pack's 52 cards"):
            engine.deal(tables, decks=decks)
    with pytest.raises(ValueError, match="dealers are given without decks"):
        engine.deal(tables, dealers=[0, 1])
    for dealers in ([0], [0, 2], [0, -1], [[0, 1]]):
        with pytest.raises(ValueError, match="expected 2 seats of 0 or 1"):
            engine.deal(tables, decks=[pack, pack], dealers=dealers)
    small = engine.new_tables(Rules(ranks=9, suits=3, hand_size=7), 1)
    with pytest.raises(ValueError, match="not 1 orders of the pack's 27 cards"):
        engine.deal(small, decks=[pack])
    assert tables.tobytes() == before


def test_rows_that_do_not_exist() -> None:
    tables = engine.new_tables("cardpuzzle", 3)
    before = tables.tobytes()
    for rows in (3, -1, [0, 3], [-1, 0]):
        with pytest.raises(ValueError, match="expected 0 to 2"):
            engine.deal(tables, rows)
    # A mask of rows is not their numbers, however much it looks like them.
    for rows in ([True, False, True], np.array([0.0, 1.0]), [[0, 1]], ["0"]):
        with pytest.raises(ValueError, match="rows are"):
            engine.deal(tables, rows)
    assert tables.tobytes() == before
    engine.deal(tables, [])
    assert tables.tobytes() == before


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range(seed: int) -> None:
    with pytest.raises(ValueError, match=f"seed is {seed}; expected a whole number of 0 to"):
        engine.new_tables("cardpuzzle", 1, seed=seed)
    with pytest.raises(ValueError, match=f"seed is {seed}; expected a whole number of 0 to"):
        engine.mix_keys(seed, np.arange(3))


@pytest.mark.parametrize("size", [0, -1])
def test_no_tables(size: int) -> None:
    with pytest.raises(ValueError, match="expected at least 1 table"):
        engine.new_tables("cardpuzzle", size)


def test_rules_by_name() -> None:
    tables = engine.new_tables("plus20:target=50,layoffs=manual", 1)
    assert tables["rules"] == preset("plus20", target=50, layoffs="manual").record()
    with pytest.raises(ValueError, match="'poker' is no preset; expected one of cardpuzzle, luciano"):
        engine.new_tables("poker", 1)


def test_keys() -> None:
    """The finalizer of splitmix64, whose numbers from seed 0 are published."""
    keys = engine.mix_keys(0, np.arange(3))
    assert keys.dtype == np.uint64
    assert [hex(key) for key in keys] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]
    assert engine.mix_keys(7, np.arange(6).reshape(2, 3)).shape == (2, 3)
    assert np.unique(engine.mix_keys(7, np.arange(10_000))).size == 10_000


def test_nothing_is_written_into_an_array_that_does_not_fit() -> None:
    t = engine.new_tables("cardpuzzle", 3)
    wrong = [
        np.zeros((3, 2 * NUM_ACTIONS), np.int8)[:, ::2],  # rows that are not contiguous
        np.zeros((3, 50), np.int8),
        np.zeros((2, NUM_ACTIONS), np.int8),
        np.zeros((3, NUM_ACTIONS), np.float64),
        np.zeros((3, NUM_MANUAL_ACTIONS), np.int8),  # of rules under which players lay melds
    ]
    for out in wrong:
        with pytest.raises(ValueError, match="expected a contiguous, writeable array of int8"):
            engine.legal(t, out)
        with pytest.raises(ValueError, match="masks is"):
            view.look(t, masks=out)
    with pytest.raises(ValueError, match="points is int32 of shape"):
        engine.step(t, [0, 0, 0], points=np.zeros((1, 2), np.int32))
    with pytest.raises(ValueError, match="over is"):
        engine.step(t, [0, 0, 0], over=np.zeros(4, np.int8))
    for function, argument in ((view.encode, view.observe(t)), (view.state, t)):
        with pytest.raises(ValueError, match="expected a contiguous, writeable array of float32"):
            function(argument, np.zeros((3, 7), np.float32))
    with pytest.raises(ValueError, match="out is"):
        view.observe(t, out=np.zeros(2, view.VIEW_DTYPE))


def test_a_huge_unsigned_action_is_not_taken_for_the_wait() -> None:
    t = engine.new_tables("cardpuzzle", 1)
    with pytest.raises(engine.IllegalAction):
        engine.step(t, np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize("options", [{"seed": 1.5}, {"seed": True}, {"first": -1}, {"first": 2**64}])
def test_seeds_and_table_numbers_are_whole(options: dict) -> None:
    with pytest.raises(ValueError, match="expected a"):
        engine.new_tables("cardpuzzle", 1, **options)
