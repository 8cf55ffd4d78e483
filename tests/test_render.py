"""A seat's view as text."""

import sys

import gymnasium
import numpy as np
import pytest

import agents
from gin_env import aec, engine
from gin_env.actions import parse_action
from gin_env.cards import parse_cards
from gin_env.picture import HEIGHT, WIDTH, render_picture
from gin_env.render import render_text
from gin_env.rules import preset
from gin_env.tables import OVER, PHASES
from gin_env.view import observe
from tests.reference import DECK
from tests.reference_engine import stacked_deck

HANDS = ("5H 6H 7H TS TD TC 2S 2D 2C 3D", "8H 9H TH 4C 4D 4S KS QC 3S 5D")


def knocked(*moves: str) -> np.ndarray:
    """Returns a table at which seat 0 has knocked with the first of `HANDS`, and some moves since."""
    tables = engine.new_tables(preset("openspiel"), 1)
    hands = [parse_cards(hand) for hand in HANDS]
    king = parse_cards("KD")[0]
    others = [card for card in DECK if card not in {*hands[0], *hands[1], king}]
    engine.deal(tables, decks=[stacked_deck(DECK, *hands, [others[0], king])], dealers=[1])
    for move in ("pass", "pass", "draw", "knock KD", *moves):
        engine.step(tables, [parse_action(move)])
    return tables


def text(tables: np.ndarray, seat: int) -> str:
    """Returns what a seat sees."""
    return render_text(observe(tables, seat)[0])


def check_picture(picture: np.ndarray) -> None:
    """Checks that something is drawn in every region."""
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert picture.dtype == np.uint8
    colors = picture.astype(np.int64) @ [1, 256, 65536]
    for top, bottom in ((0, 46), (60, 200), (250, 380), (430, 570), (HEIGHT - 46, HEIGHT)):
        assert len(np.unique(colors[top:bottom])) > 20


def test_showdown() -> None:
    laid = ("meld 5H 6H 7H", "meld TS TD TC")
    tables = knocked(*laid)
    for seat, who in ((0, "you"), (1, "opponent")):
        lines = text(tables, seat).splitlines()
        assert f"knocked    {who}" in lines
        assert "meld 2     [10♠ 10♦ 10♣]" in lines
        assert f"to move    {who}: lay melds, or pass" in lines
    # Not on the table yet.
    assert "2♠" not in text(tables, 1)

    tables = knocked(*laid, "meld 2S 2D 2C", "pass", "layoff 8H 1")
    lines = text(tables, 1).splitlines()
    assert "meld 1     [5♥ 6♥ 7♥] + 8♥" in lines
    assert "knocked on 3  ♦ 3" in lines
    assert "to move    you: lay off, or pass" in lines
    assert "hand       ♠ 3 4 K   ♥ 9 10   ♦ 4 5   ♣ 4 Q" in lines
    lines = text(tables, 0).splitlines()
    assert "opponent   9 hidden" in lines
    assert "hand       ♦ 3" in lines

    tables = knocked(*laid, "meld 2S 2D 2C", "pass", "layoff 8H 1", "pass", "meld 4S 4D 4C")
    lines = text(tables, 0).splitlines()
    assert "defence    [4♠ 4♦ 4♣]" in lines
    assert "opponent   6 hidden" in lines
    assert "to move    opponent: lay melds, or pass" in lines
    engine.step(tables, [parse_action("pass")])
    assert "result     you knocked and won 44" in text(tables, 0)


@pytest.mark.parametrize("rules", ["cardpuzzle", "openspiel", "plus20:oklahoma=true,double_spades=all"])
def test_every_phase_has_a_text(rules: str) -> None:
    tables = engine.new_tables(rules, 100, seed=2, match=rules == "cardpuzzle")
    player = agents.make("greedy:knock=4")
    seen: set[int] = set()
    endings: set[int] = set()
    for _ in range(120):
        view = observe(tables)
        for row in view:
            if row["phase"] not in seen:
                seen.add(int(row["phase"]))
                assert "to move    you: " in render_text(row)
                check_picture(render_picture(row))
        mask = engine.legal(tables)
        actions = player.act(view, mask, engine.decision_keys(1, tables))
        engine.step(tables, actions)
        over = np.flatnonzero(tables["phase"] == OVER)
        for row in over[:1]:
            assert "result     " in render_text(observe(tables)[row])
            if tables["ending"][row] not in endings:
                endings.add(int(tables["ending"][row]))
                check_picture(render_picture(observe(tables)[row]))
        engine.deal(tables, over)
    wanted = {"offer", "offer-dealer", "draw-stock", "draw", "throw"}
    if rules == "openspiel":
        wanted |= {"declare", "lay-off", "defend"}
    assert {PHASES[phase] for phase in seen} >= wanted


def test_a_picture_shows_what_the_seat_knows() -> None:
    """The same for cards that are hidden from the seat, another where one of its own differs."""
    tables = engine.new_tables("cardpuzzle", 1, seed=3)
    seat = int(tables["mover"][0])
    first = render_picture(observe(tables, seat)[0])
    other = tables.copy()
    deck = other["deck"][0]
    hidden = [place for place in range(52) if not int(tables["hands"][0, seat]) >> int(deck[place]) & 1 and place != 20]
    shuffled = deck.copy()
    shuffled[hidden] = deck[hidden[::-1]]
    engine.deal(other, decks=[shuffled], dealers=[1 - seat])
    assert np.array_equal(render_picture(observe(other, seat)[0]), first)
    engine.deal(other)
    assert not np.array_equal(render_picture(observe(other, seat)[0]), first)


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'pictures need Pillow: pip install "gin-env\[pictures\]"'):
        render_picture(observe(engine.new_tables("cardpuzzle", 1))[0])


def test_environments_render_pictures() -> None:
    env = aec.env(render_mode="rgb_array")
    env.reset(seed=1)
    check_picture(env.render())
    one = gymnasium.make("gin_env/GinRummy-v0", render_mode="rgb_array")
    one.reset(seed=1)
    check_picture(one.render())
    many = gymnasium.make_vec("gin_env/GinRummy-v0", num_envs=2, render_mode="rgb_array")
    many.reset(seed=1)
    pictures = many.render()
    assert len(pictures) == 2
    assert np.array_equal(pictures[0], one.render())
