"""A seat's view of Rummy40 as text and as a picture."""

import gymnasium
import numpy as np
import pytest

from gin_env.picture import HEIGHT, WIDTH
from gin_env.rummy40 import aec, as_rules, engine
from gin_env.rummy40.actions import parse_action
from gin_env.rummy40.picture import render_picture
from gin_env.rummy40.render import render_text
from gin_env.rummy40.tables import ENDINGS, OVER
from gin_env.rummy40.testing import shuffle_hidden
from gin_env.rummy40.view import observe
from tests.rummy40_hands import choose, set_up
from tests.test_render import check_picture


def lines(tables: np.ndarray, seat: int = 0) -> list[str]:
    """Returns what a seat sees."""
    return render_text(observe(tables, seat)[0]).splitlines()


def test_a_table_with_melds() -> None:
    melds = [(0, "5S JK 7S"), (1, "9H 9D 9C"), (1, "2D 3D 4D JK")]
    tables = set_up("rummy40", "8S 8D TH", melds, banned=7, pile="QC KC", match=True)
    tables["known"][0, 0, 0] = 1 << 7
    tables["scores"][0, :2] = 12, 34
    own = lines(tables)
    assert own[0] == "rummy40  seat 0, non-dealer, 40 points to open"
    assert own[1] == "score      you 12, opponent 34, to 100"
    assert "opponent   10 hidden, opened" in own
    assert "table      you: [5♠ JK 7♠]" in own
    assert "           opponent: [9♥ 9♦ 9♣]  [2♦ 3♦ 4♦ JK]" in own
    assert "pile       Q♣ K♣ <- top" in own
    assert "hand       ♠ 8   ♥ 10   ♦ 8  (26 points, opened)" in own
    assert "you took   8♠" in own
    assert own[-1] == "to move    you: lay, add, steal or discard"
    other = lines(tables, 1)
    assert "opponent   2 hidden, known 8♠, opened" in other
    assert "table      you: [9♥ 9♦ 9♣]  [2♦ 3♦ 4♦ JK]" in other
    assert other[-1] == "to move    opponent: lay, add, steal or discard"
    assert not any("took" in line for line in other)

    engine.step(tables, [parse_action("add 8S high")])
    assert "table      you: [5♠ JK 7♠ 8♠]" in lines(tables)


def test_an_opening_that_is_wrong() -> None:
    tables = set_up("rummy40:wrong_opening=penalty", "AS 2S 3S 4H 6H 8H TH QH 2D 4D 6D", opened=False)
    assert lines(tables)[-1] == "to move    you: lay or discard"
    engine.step(tables, [parse_action("lay AS 2S 3S")])
    assert lines(tables)[-1] == "to move    you: 6 of 40 points lie there: lay more or take them back"
    check_picture(render_picture(observe(tables, 0)[0]))
    engine.step(tables, [parse_action("take-back")])
    assert "hand       ♠ A 2 3   ♥ 4 6 8 10 Q   ♦ 2 4 6  (56 points, not opened, 20 points booked)" in lines(tables)
    assert "opponent   8 hidden, known A♠ 2♠ 3♠, 20 points booked" in lines(tables, 1)


def test_a_stolen_joker() -> None:
    tables = set_up("rummy40", "6S 8D TH KD KC", [(1, "5S JK 7S")])
    engine.step(tables, [parse_action("steal 6S run")])
    assert lines(tables)[-1] == "to move    you: place the stolen joker"
    assert "table      opponent: [5♠ 6♠ 7♠]" in lines(tables)


def test_four_players_and_the_end() -> None:
    tables = set_up("rummy40:seats=4", "2S 2S 3S 3H", [(2, "AS AH AD JK"), (0, "3H 4H 5H")], pile="KC")
    assert "hand       ♠ 2 2 3   ♥ 3  (10 points, opened)" in lines(tables)
    assert "player 2   10 hidden, opened" in lines(tables)
    assert "           player 2: [A♠ A♥ A♦ JK]" in lines(tables)
    assert lines(tables, 3)[-1] == "to move    player 1: lay, add, steal or discard"

    tables = set_up("rummy40:seats=4", "2S", [(0, "3H 4H 5H")], pile="KC")
    engine.step(tables, [parse_action("discard 2S")])
    penalties = tables["penalties"][0].tolist()
    assert penalties[0] == 0
    won = sum(penalties) / 3
    assert f"result     you went out: you won {won:.4g}" in lines(tables)
    lost = penalties[1] - (sum(penalties) - penalties[1]) / 3
    assert f"result     player 3 went out: you {'lost' if lost > 0 else 'won'} {abs(lost):.4g}" in lines(tables, 1)
    assert "hand       nothing left  (0 points)" in lines(tables)
    assert any(line.endswith(f"({penalties[3]} points)") for line in lines(tables) if line.startswith("player 3"))
    check_picture(render_picture(observe(tables, 1)[0]))


@pytest.mark.parametrize("rules", ["rummy40", "rummy40:seats=4,opening=0", "rummy40:pile=opened,draw_cap=30,opening=0"])
def test_every_position_has_a_text_and_a_picture(rules: str) -> None:
    seats = as_rules(rules).seats
    tables = engine.new_tables(rules, 50, seed=2, match=True)
    chosen = np.empty(50, dtype=np.int64)
    said, endings = set(), set()
    for _ in range(200):
        for row in observe(tables)[:8]:
            text = render_text(row)
            decision = text.splitlines()[-1]
            assert decision.startswith("to move    you: ")
            if decision not in said:
                said.add(decision)
                check_picture(render_picture(row))
        choose(engine.legal(tables), engine.decision_keys(1, tables), np.ones(50, dtype=bool), chosen)
        engine.step(tables, chosen)
        over = np.flatnonzero(tables["phase"] == OVER)
        for row in over:
            views = [observe(tables, seat)[row] for seat in range(seats)]
            assert all("result     " in render_text(view) for view in views)
            if tables["ending"][row] not in endings:
                endings.add(int(tables["ending"][row]))
                check_picture(render_picture(views[-1]))
        engine.deal(tables, over)
    assert len(said) > 1
    if "pile=opened" in rules:
        assert "to move    you: draw from the stock" in said
        assert ENDINGS.index("truncated") in endings


def test_a_picture_shows_what_the_seat_knows() -> None:
    tables = engine.new_tables("rummy40:seats=4,opening=0", 1, seed=3)
    chosen = np.empty(1, dtype=np.int64)
    for turn in range(60):
        if turn % 20 == 0:
            for seat in range(4):
                view = observe(tables, seat)[0]
                other = observe(shuffle_hidden(tables, seat, np.random.default_rng(turn)), seat)[0]
                assert render_text(other) == render_text(view)
                assert np.array_equal(render_picture(other), render_picture(view))
        choose(engine.legal(tables), engine.decision_keys(2, tables), np.ones(1, dtype=bool), chosen)
        before = render_picture(observe(tables, 0)[0])
        engine.step(tables, chosen)
        assert not np.array_equal(render_picture(observe(tables, 0)[0]), before)


def test_a_table_full_of_melds_fits_into_the_picture() -> None:
    """As many melds as two packs make, in four lines between the other players and the stock."""
    sets = [f"{rank}{one} {rank}{two} {rank}{three}" for rank in "A23456789TJQ" for one, two, three in ("SHD", "HDC")]
    melds = [(number % 4, cards) for number, cards in enumerate(sets)]
    tables = set_up("rummy40:seats=4,hand_size=5", "KS KH KD", melds, pile="KC")
    picture = render_picture(observe(tables, 0)[0])
    check_picture(picture)
    felt = picture[180, 5]
    assert (picture[:, :30] == felt).all(axis=2)[60:330].all()
    assert (picture[:, WIDTH - 30 :] == felt).all(axis=2)[60:330].all()
    assert (picture[326:333] == felt).all()  # the line above the stock
    assert picture.shape == (HEIGHT, WIDTH, 3)


def test_environments_render() -> None:
    for rules in ("rummy40", "rummy40:seats=4"):
        for mode in ("ansi", "rgb_array"):
            env = aec.env(rules=rules, render_mode=mode)
            env.reset(seed=1)
            one = gymnasium.make("gin_env/Rummy40-v0", rules=rules, render_mode=mode)
            one.reset(seed=1)
            many = gymnasium.make_vec("gin_env/Rummy40-v0", num_envs=2, rules=rules, render_mode=mode)
            many.reset(seed=1)
            first = many.render()[0]
            if mode == "ansi":
                assert env.render().startswith("rummy40  seat ")
                assert one.render() == first
            else:
                check_picture(env.render())
                assert np.array_equal(one.render(), first)
