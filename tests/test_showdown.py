"""From the knock to the score where players lay their own cards, and the other ways in which a hand may end.

Worked by hand, rule by rule; `tests.test_engine` plays the same against the reference.
"""

from typing import Any

import numpy as np
import pytest

from gin_env import IllegalAction, Rules, engine, preset
from gin_env.actions import action_name, parse_action
from gin_env.cards import cards_text, parse_cards, to_mask
from gin_env.tables import BIG_GINNED, OVER, PHASES, WALL, WALL_THROW
from gin_env.view import observe
from tests.reference import DECK
from tests.reference_engine import stacked_deck
from tests.test_melds import in_use

KNOCKER, DEFENDER = 0, 1
BY_HAND = {"knocker_melds": "manual", "layoffs": "manual", "defender_melds": "manual"}


def play(tables: np.ndarray, *moves: str) -> np.ndarray:
    """Plays actions by name and returns the points of the last one."""
    points = np.zeros((1, 2), dtype=np.int32)
    for move in moves:
        points, _ = engine.step(tables, [parse_action(move)])
    return points[0]


def names_of(tables: np.ndarray) -> list[str]:
    """Returns the names of the legal actions."""
    return [action_name(action) for action in engine.legal_actions(tables)]


def phase_of(tables: np.ndarray) -> str:
    return PHASES[tables["phase"][0]]


def refused(tables: np.ndarray, move: str) -> bool:
    """Says whether an action is refused, and asserts that it then changes nothing."""
    before, after = tables.tobytes(), tables.copy()
    try:
        engine.step(after, [parse_action(move)])
    except IllegalAction:
        with pytest.raises(IllegalAction):
            engine.step(tables, [parse_action(move)])
        assert tables.tobytes() == before
        return True
    return False


def dealt(rules: Rules | str, first: str, second: str, then: str) -> np.ndarray:
    """Returns a table at which seat 0 begins: its hand, that of the dealer, then upcard and stock."""
    tables = engine.new_tables(rules, 1)
    deck = stacked_deck(DECK, parse_cards(first), parse_cards(second), parse_cards(then))
    engine.deal(tables, decks=[deck], dealers=[1])
    return tables


def knocked(rules: Rules | str, knocker: str, defender: str, thrown: str = "KS") -> np.ndarray:
    """Returns a table at which seat 0 has drawn and thrown a card, knocking."""
    used = parse_cards(f"{knocker} {defender} {thrown}")
    upcard = next(card for card in DECK if card not in used)
    tables = dealt(rules, knocker, defender, f"{cards_text([upcard])} {thrown}")
    play(tables, "pass", "pass", "draw", f"knock {thrown}")
    return tables


# ------------------------------------------------------------------------------------------------- the knocker's melds

# Two runs, a set, and an ace: 1 point at best.
RUNS_AND_SET = "3S 4S 5S 6S 9H TH JH 7S 7D 7C"
NOTHING = "2H 5H KD QC TD 8C 6D 4C 2D AH"  # 58 points, no meld


def test_only_melds_that_let_the_knocker_come_within_the_limit() -> None:
    tables = knocked(preset("cardpuzzle", **BY_HAND), "3S 4S 5S 6S 7S 7H 7D 9H TH JH", NOTHING)
    assert phase_of(tables) == "declare"
    # It is gin with the sevens as a set. With the seven of spades in the run the two others are left, 14 points.
    assert not refused(tables, "meld 7S 7H 7D")
    assert refused(tables, "meld 3S 4S 5S 6S 7S")
    assert refused(tables, "meld 4S 5S 6S 7S")
    assert not refused(tables, "meld 3S 4S 5S")  # leaves 6 points, with the set
    assert not refused(tables, "meld 4S 5S 6S")  # leaves 3
    assert refused(tables, "pass")  # all is unlaid
    assert refused(tables, "meld TH JH QH")  # not in the hand
    assert refused(tables, "layoff 7S 1")
    play(tables, "meld 7S 7H 7D")
    assert refused(tables, "meld 7S 7H 7D")
    assert refused(tables, "meld 3S 4S 5S 6S 7S")
    assert refused(tables, "pass")
    play(tables, "meld 9H TH JH")
    assert refused(tables, "pass")  # 18
    play(tables, "meld 4S 5S 6S")
    assert names_of(tables) == ["pass"]
    play(tables, "pass")
    assert tables["knocked_with"].tolist() == [3]
    assert [cards_text(meld) for meld in in_use(tables["laid"][0, KNOCKER])] == ["7S 7H 7D", "9H TH JH", "4S 5S 6S"]


def test_knocker_may_stop_as_soon_as_it_is_within_the_limit() -> None:
    """With gin in hand, and pay for it: the rest counts, and the defender lays off."""
    hand = "AS 2S 3S 7S 7H 7D 9H TH JH QH"
    tables = knocked(preset("cardpuzzle", knocker_melds="manual"), hand, NOTHING)
    play(tables, "meld 9H TH JH QH")
    assert refused(tables, "pass")  # 6 and 21
    play(tables, "meld 7S 7H 7D")
    gin = tables.copy()
    assert play(tables, "pass").tolist() == [58 - 6, 6 - 58]
    assert engine.result(tables).ending == "knock"
    assert play(gin, "meld AS 2S 3S", "pass").tolist() == [58 + 25, -58 - 25]
    assert engine.result(gin).ending == "gin"


def test_knocker_without_a_meld() -> None:
    """Ten cards that are worth the limit need none."""
    rules = preset("cardpuzzle", knock_limit=40, **BY_HAND)
    tables = knocked(rules, "AS AH 2S 2D 3H 3C 5S 6D 7H 9C", "KH KD QS QD JS JC TS TC 8D 8H")
    assert names_of(tables) == ["pass"]
    play(tables, "pass")
    assert (phase_of(tables), tables["knocked_with"].tolist()) == ("lay-off", [39])
    assert names_of(tables) == ["pass"]
    play(tables, "pass")
    assert phase_of(tables) == "defend"
    assert play(tables, "pass").tolist() == [96 - 39, 39 - 96]
    assert engine.result(tables).layoffs == ()


def test_gin_only_hand_must_be_laid_in_full() -> None:
    rules = preset("plus20", oklahoma=True, knocker_melds="manual")
    deck = stacked_deck(
        DECK,
        parse_cards("4H 5H 6H 7H 8H 9H TH JH QH KH"),
        parse_cards("2S 4S 6S 8S TS 3D 5D 7D 9D JD"),
        parse_cards("AC"),
    )
    tables = engine.new_tables(rules, 1)
    engine.deal(tables, decks=[deck], dealers=[1])
    assert tables["limit"].tolist() == [0]
    play(tables, "take", "knock AC")
    runs = [name for name in names_of(tables) if name.startswith("meld")]
    assert all(len(name.split()) in (4, 5, 6) for name in runs)
    # Whatever is laid, the ends must be runs too: not the 5 6 7 that would leave the 4 alone.
    assert "meld 5H 6H 7H" not in runs
    assert "meld 7H 8H 9H" in runs
    assert "pass" not in names_of(tables)
    play(tables, "meld 7H 8H 9H", "meld TH JH QH KH", "meld 4H 5H 6H")
    assert names_of(tables) == ["pass"]
    play(tables, "pass")
    assert engine.result(tables).ending == "gin"


def test_what_is_laid_is_known_and_the_rest_is_not_yet() -> None:
    tables = knocked(preset("luciano", **BY_HAND), RUNS_AND_SET, NOTHING)
    assert observe(tables, DEFENDER)["opponent_known"].tolist() == [0]
    play(tables, "meld 7S 7D 7C")
    view = observe(tables, DEFENDER)[0]
    assert view["opponent_known"] == to_mask(parse_cards("7S 7D 7C"))
    assert (view["to_move"], view["knocker"], view["opponent_deadwood"]) == (False, 1, -1)
    play(tables, "meld 3S 4S 5S 6S", "meld 9H TH JH", "pass")
    assert observe(tables, DEFENDER)["opponent_known"].tolist() == [to_mask(parse_cards(RUNS_AND_SET))]


# --------------------------------------------------------------------------------------------------------- the defence


def test_layoffs_name_the_meld_in_the_order_laid() -> None:
    """A card that fits two melds may go on either, and on either one lets other cards follow."""
    rules = preset("cardpuzzle", **BY_HAND)
    tables = knocked(rules, "8H 8D 8C 5S 6S 7S JD QD KD AC", "8S 9S TS 2H 3D 4C 5H 6D QC KH")
    play(tables, "meld 8H 8D 8C", "meld JD QD KD", "meld 5S 6S 7S", "pass")
    assert names_of(tables) == ["pass", "layoff 8S 1", "layoff 8S 3"]
    on_run = tables.copy()
    play(tables, "layoff 8S 1")
    assert names_of(tables) == ["pass"]
    play(on_run, "layoff 8S 3", "layoff 9S 3")
    assert names_of(on_run) == ["pass", "layoff TS 3"]
    # It may stop, and what it keeps in hand counts; own melds come after the layoffs.
    play(on_run, "pass")
    assert (phase_of(on_run), names_of(on_run)) == ("defend", ["pass"])
    assert play(on_run, "pass").tolist() == [50 - 1, 1 - 50]
    assert engine.result(on_run).layoffs == ("", "", "8S 9S")


def test_own_melds_are_for_what_is_left() -> None:
    rules = preset("cardpuzzle", **BY_HAND)
    tables = knocked(rules, "5S 6S 7S JH JD JC 2H 2D 2C 3H", "8S 9S TS KH KD KC 4D 6C QC AD")
    play(tables, "meld 5S 6S 7S", "meld JH JD JC", "meld 2H 2D 2C", "pass")
    melds = ["meld KH KD KC", "meld 8S 9S TS"]
    kept = tables.copy()
    play(kept, "pass")
    assert names_of(kept) == ["pass", *melds]
    broken = tables.copy()
    play(broken, "layoff 8S 1", "pass")
    assert names_of(broken) == ["pass", melds[0]]
    play(broken, *melds[:1])
    assert names_of(broken) == ["pass"]
    assert play(broken, "pass").tolist() == [40 - 3, 3 - 40]  # 9S TS 4D 6C QC AD
    # Nobody has to lay anything.
    assert play(kept, "pass").tolist() == [78 - 3, 3 - 78]


def test_defender_whose_melds_the_engine_lays() -> None:
    tables = knocked(
        preset("cardpuzzle", layoffs="manual"), "5S 6S 7S JH JD JC 2H 2D 2C 3H", "8S 9S TS KH KD KC 4D 6C QC AD"
    )
    assert phase_of(tables) == "lay-off"
    assert play(tables, "pass").tolist() == [21 - 3, 3 - 21]
    assert engine.result(tables).melds[DEFENDER] == ("KH KD KC", "8S 9S TS")


@pytest.mark.parametrize("defender_melds", ["auto", "manual"])
def test_layoffs_ascending(defender_melds: Any) -> None:
    """The lowest card first, on the first meld that takes it: here the eight goes where the nine cannot follow."""
    rules = preset("cardpuzzle", layoffs="ascending", knocker_melds="manual", defender_melds=defender_melds)
    begun = knocked(rules, "8H 8D 8C 5S 6S 7S JD QD KD AC", "4S 8S 9S 2H 3D 4C 5H 6D QC KH")
    for melds, layoffs, left in (
        (("8H 8D 8C", "5S 6S 7S", "JD QD KD"), ("8S", "4S", ""), 49),
        (("5S 6S 7S", "JD QD KD", "8H 8D 8C"), ("4S 8S 9S", "", ""), 40),
    ):
        tables = begun.copy()
        play(tables, *(f"meld {meld}" for meld in melds), "pass")
        if defender_melds == "manual":
            assert names_of(tables) == ["pass"]
            play(tables, "pass")
        result = engine.result(tables)
        assert result.layoffs == layoffs
        assert result.deadwood == (1, left)


@pytest.mark.parametrize("layoffs", ["ascending", "manual"])
def test_big_gin_is_laid_by_the_engine_and_defended_by_hand(layoffs: Any) -> None:
    rules = preset("cardpuzzle", knocker_melds="manual", layoffs=layoffs, defender_melds="manual")
    tables = dealt(rules, "5S 6S 7S 8S JH JD JC 2C 3C 4C", "KS KH KD QS QC 7D 8H 2H 3H AS", "9S")
    play(tables, "take", "big-gin")
    assert (phase_of(tables), tables["mover"].tolist()) == ("defend", [DEFENDER])
    assert [cards_text(m) for m in in_use(tables["laid"][0, KNOCKER])] == ["JH JD JC", "5S 6S 7S 8S 9S", "2C 3C 4C"]
    view = observe(tables)[0]
    assert (view["taken"], view["drawn"], view["opponent_cards"]) == (-1, -1, 11)
    assert names_of(tables) == ["pass", "meld KS KH KD"]
    assert play(tables, "meld KS KH KD", "pass").tolist() == [72, -72]  # QS QC 7D 8H 2H 3H AS are 41
    assert tables["ending"].tolist() == [BIG_GINNED]


def test_big_gin_leaves_no_drawn_card_to_the_defender() -> None:
    rules = preset("cardpuzzle", **BY_HAND)
    tables = dealt(rules, "5S 6S 7S 8S JH JD JC 2C 3C 4C", "KS KH KD QS QC 7D 8H 2H 3H AS", "6H 9S")
    play(tables, "pass", "pass", "draw", "big-gin")
    assert phase_of(tables) == "defend"
    for seat in (KNOCKER, DEFENDER):
        assert observe(tables, seat)["drawn"].tolist() == [-1]


# ------------------------------------------------------------------------------------------------------------ the wall


def to_the_wall(rules: Rules, first: str, second: str, last: str) -> np.ndarray:
    """Returns a table at the wall: both have drawn and thrown from the stock, down to nine cards; seat 0 is to move."""
    used = parse_cards(f"{first} {second} {last}")
    spare = [card for card in DECK if card not in used][:22]
    tables = dealt(rules, first, second, f"{cards_text(spare)} {last}")
    play(tables, "pass", "pass")
    for card in [*spare[1:], *parse_cards(last)]:
        play(tables, "draw", f"discard {cards_text([card])}")
    assert (tables["phase"].tolist(), tables["mover"].tolist()) == ([WALL], [0])
    return tables


AT_NINE = {"wall": "knock", "stock_floor": 9}
OTHER = "9D 5H KD QC TD 8C 6D 4C 2D AH"


@pytest.mark.parametrize("rediscard", [False, True])
def test_wall(rediscard: bool) -> None:
    rules = preset("luciano", knock_limit=7, rediscard=rediscard, **AT_NINE)
    tables = to_the_wall(rules, "5S 6S 7S JH JD JC 2H 3H KC 7H", OTHER, "4H")
    assert names_of(tables) == ["pass", "take"]
    assert refused(tables, "draw")
    dead = tables.copy()
    assert play(dead, "pass").tolist() == [0, 0]
    assert (engine.result(dead).ending, engine.result(dead).turns) == ("dead", 22)
    np.testing.assert_array_equal(dead["declined"], tables["declined"])
    play(tables, "take")
    assert tables["phase"].tolist() == [WALL_THROW]
    assert names_of(tables) == ["knock KC"]
    assert refused(tables, "discard KC")
    assert tables["takes"].tolist() == [0]
    play(tables, "knock KC")
    assert (engine.result(tables).ending, engine.result(tables).turns) == ("knock", 23)


@pytest.mark.parametrize("rediscard", [False, True])
def test_wall_where_only_the_card_just_taken_could_be_thrown(rediscard: bool) -> None:
    """A hand that could have knocked with any card to throw: under most rules the one just taken is none."""
    rules = preset("luciano", knock_limit=9, rediscard=rediscard, **AT_NINE)
    tables = to_the_wall(rules, "5S 6S 7S JH JD JC 2H 3H 4H AD", OTHER, "KH")
    if not rediscard:
        assert names_of(tables) == ["pass"]
        assert refused(tables, "take")
        return
    play(tables, "take")
    assert names_of(tables) == ["knock KH"]


def test_wall_with_big_gin_and_melds_by_hand() -> None:
    rules = preset("cardpuzzle", **AT_NINE, **BY_HAND)
    tables = to_the_wall(rules, "5S 6S 7S 8S JH JD JC 2H 3H 4H", OTHER, "9S")
    play(tables, "take")
    assert "big-gin" in names_of(tables)
    assert all(name.startswith("knock") or name == "big-gin" for name in names_of(tables))
    play(tables, "knock 5S")
    assert phase_of(tables) == "declare"


def test_without_a_wall_the_hand_is_dead() -> None:
    tables = engine.new_tables(preset("luciano", stock_floor=9), 1, seed=1)
    play(tables, "pass", "pass")
    while tables["phase"][0] != OVER:
        engine.step(tables, [parse_action("draw")])
        engine.step(tables, [3 + int(tables["drawn"][0])])
    assert (engine.result(tables).ending, engine.result(tables).turns) == ("dead", 22)


# ----------------------------------------------------------------------------------------------------- caps, one hand


def test_swap_cap() -> None:
    """So many turns in a row that take the top card and throw it back; any other turn begins anew."""
    rules = preset("plus20", swap_cap=2)
    hands = ("2S 4S 6S 8S TS 3D 5D 7D 9D JD", "2H 4H 6H 8H TH 3C 5C 7C 9C JC")
    tables = dealt(rules, *hands, "KS QS")
    play(tables, "take", "discard KS")
    assert tables["swaps"].tolist() == [1]
    other = tables.copy()
    assert play(tables, "take", "discard KS").tolist() == [0, 0]
    assert (engine.result(tables).ending, engine.result(tables).turns) == ("dead", 2)
    play(other, "take", "discard 2H")
    assert other["swaps"].tolist() == [0]
    play(other, "take", "discard 2H", "draw", "discard QS", "take", "discard QS")
    assert (other["swaps"].tolist(), phase_of(other)) == ([1], "draw")
    # A knock that throws the card back is a knock.
    tables = dealt(rules, hands[0].replace("JD", "8D"), "5C 6C 7C JH JD JC 2H 3H 4H AD", "KH")
    play(tables, "take", "discard KH", "take", "knock KH")
    assert engine.result(tables).ending == "knock"


def test_take_cap() -> None:
    """Counted over both players, the upcard offer apart; the last card taken ends the hand in the hand that took it."""
    rules = preset("cardpuzzle", take_cap=2)
    hands = ("2S 4S 6S 8S TS 3D 5D 7D 9D JD", "2H 4H 6H 8H TH 3C 5C 7C 9C JC")
    tables = dealt(rules, *hands, "KS QS")
    play(tables, "take", "discard JD")
    assert tables["takes"].tolist() == [0]
    play(tables, "take", "discard JC", "draw", "discard QS")
    assert tables["takes"].tolist() == [1]
    points, over = engine.step(tables, [parse_action("take")])
    assert points.tolist() == [[0, 0]]
    assert over.tolist() == [engine.EPISODE_ENDED]
    assert (engine.result(tables).ending, engine.result(tables).turns) == ("dead", 4)
    assert np.bitwise_count(tables["hands"]).tolist() == [[10, 11]]
    assert tables["phase"].tolist() == [OVER]
    # The same player deals again.
    assert tables["dealer"].tolist() == [1]


def test_openspiel_is_always_begun_by_seat_0() -> None:
    tables = engine.new_tables("openspiel", 8, match=True)
    rng = np.random.default_rng(3)
    for _ in range(400):
        begins = tables["num_moves"] == 0
        assert (tables["mover"][begins] == 0).all()
        masks = engine.legal(tables)
        engine.step(tables, np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1), redeal=True)
    assert (tables["hand_number"] > 1).all()


# ---------------------------------------------------------------------------------------------------------- refusals


DECLARED = ["meld 7D 7C 7S", "meld 9H TH JH", "meld 3S 4S 5S", "pass"]


@pytest.mark.parametrize(
    ("moves", "action", "message"),
    [
        ([], "draw", "seat 0 may not play 'draw' .* in phase 'declare'; legal: meld 7S 7D 7C, meld 3S 4S 5S, meld 9H"),
        ([], "pass", "seat 0 may not play 'pass' .* in phase 'declare'"),
        ([], "layoff 8H 1", "seat 0 may not play 'layoff 8H 1' .* in phase 'declare'"),
        (
            DECLARED,
            "meld 7H 8H 9H",
            "seat 1 may not play 'meld 7H 8H 9H' .* in phase 'lay-off'; legal: pass, layoff 7H 1",
        ),
        (DECLARED, "layoff 7H 2", "seat 1 may not play 'layoff 7H 2' .* in phase 'lay-off'; legal: pass, layoff 7H 1"),
        ([*DECLARED, "pass"], "layoff 7H 1", "seat 1 may not play 'layoff 7H 1' .* in phase 'defend'; legal: pass\n"),
        ([*DECLARED, "pass", "pass"], "pass", "'pass' .* is illegal: the hand is over; deal or reset first"),
    ],
)
def test_messages(moves: list[str], action: str, message: str) -> None:
    tables = knocked(preset("luciano", **BY_HAND), "3S 4S 5S 9H TH JH 7D 7C 7S AC", "7H 8H KH KD QC TD 8C 6D 4C 2D")
    play(tables, *moves)
    with pytest.raises(IllegalAction, match=message):
        play(tables, action)
