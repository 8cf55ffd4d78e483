"""The engine of Rummy40 against a plain reference, and what must hold at every table."""

from random import Random

import numpy as np

from gin_env.rummy40 import Rummy40Rules, engine
from gin_env.rummy40.actions import action_name
from gin_env.rummy40.cards import held
from gin_env.rummy40.record import table_record
from gin_env.rummy40.tables import ENDINGS, PHASES
from tests import reference_rummy40 as reference


def assert_same(tables: np.ndarray, told: reference.Table) -> None:
    """Everything that the reference knows is what the table says."""
    t, seats = tables[0], told.rules.seats
    line = table_record(tables).line()
    assert told.phase == PHASES[t["phase"]], line
    if told.phase != "over":
        assert told.mover == t["mover"], line
    for seat in range(seats):
        assert list(told.hands[seat]) == held(t["hands"][seat], t["jokers"][seat]), line
        assert sorted(told.known[seat]) == held(t["known"][seat], t["known_jokers"][seat]), line
        assert len(told.hands[seat]) == t["num_cards"][seat]
    assert told.opened == t["opened"][:seats].astype(bool).tolist(), line
    assert told.booked == t["booked"][:seats].tolist()
    assert told.scores == t["scores"][:seats].tolist()
    assert told.dealer == t["dealer"]
    size = int(t["pile_size"])
    assert told.pile == t["pile"][:size].tolist()
    assert [-1 if by is None else by for by in told.pile_by] == t["pile_by"][:size].tolist()
    assert len(told.stock) == t["rules"]["deck_size"] - t["stock_at"]
    assert (told.laid, told.attempt, told.owed, told.draws) == (
        t["attempt_points"], t["attempt"], t["owed"], t["draws"],
    )  # fmt: skip
    assert len(told.melds) == t["num_melds"], line
    for k, meld in enumerate(told.melds):
        real = {card for card in meld.cards if card != reference.JOKER}
        assert sum(1 << card for card in real) == t["meld_cards"][k], line
        assert sum(1 << card for card in meld.stands(told.pack)) == t["meld_stands"][k], line
        assert meld.owner == t["meld_owner"][k]
        low, high = (-1, -1) if meld.first is None else (meld.first, meld.first + len(meld.cards) - 1)
        assert (low, high) == (t["meld_low"][k], t["meld_high"][k]), line


STYLES = ("any", "lay", "hold", "keep", "meld")


def choose(told: reference.Table, legal: list[int], rng: Random, style: str) -> int:
    """Returns a move: any; or mostly those that put cards on the table, or only then when one must."""
    tabled = [move for move in legal if move >= reference.FIRST_MELD]
    if style != "any" and tabled and rng.random() < (0.1 if style == "hold" else 0.9):
        steals = [move for move in tabled if move >= reference.at_place("steal set", 0)]
        return rng.choice(steals if steals and rng.random() < 0.5 else tabled)
    rest = [move for move in legal if move not in tabled] or legal
    if style in ("keep", "hold", "meld") and told.phase == "play":
        # Of the throws those of cards without neighbours.
        hand = told.hands[told.mover]

        def ties(move: int) -> int:
            card = move - reference.discard(0)
            if card == reference.JOKER:
                return 99
            others = list(hand)
            if card in others:
                others.remove(card)
            return sum(
                c != reference.JOKER and (c % 13 == card % 13 or c // 13 == card // 13 and abs(c - card) < 3)
                for c in others
            )

        if style == "meld" or rng.random() < 0.8:
            return min(rng.sample(rest, len(rest)), key=ties)
    return rng.choice(rest)


def play_both(rules: Rummy40Rules, seed: int, hands: int, match: bool = False) -> dict[str, int]:
    """Plays hands on both engines and compares them at every step; returns how many ended in which way."""
    rng = Random(seed)
    tables = engine.new_tables(rules, 1, seed=seed, match=match)
    told = reference.Table(rules, match)
    endings = dict.fromkeys(ENDINGS[1:], 0)
    for number in range(hands):
        if number:
            engine.deal(tables)
        dealer = told.next_dealer()
        told.deal(tables["deck"][0, : rules.deck_size].tolist(), int(tables["dealer"][0]) if dealer is None else dealer)
        styles = [rng.choice(STYLES) for _ in range(rules.seats)]
        while True:
            assert_same(tables, told)
            legal = told.legal()
            assert engine.legal_actions(tables) == legal, (
                table_record(tables).line(),
                sorted(map(action_name, set(engine.legal_actions(tables)) ^ set(legal))),
            )
            if told.phase == "over":
                break
            assert legal, "a dead end"
            move = choose(told, legal, rng, styles[told.mover])
            told.play(move)
            engine.step(tables, [move])
        result = engine.result(tables)
        assert result is not None
        assert told.result is not None
        assert (result.ending, result.out, result.penalties, result.turns) == told.result
        endings[result.ending] += 1
        winners = np.flatnonzero(tables["match_winners"][0]).tolist()
        assert (winners, bool(tables["match_over"][0])) == (told.match_winners, bool(told.match_winners))
    return endings
