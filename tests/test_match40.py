"""Duplicate matches of Rummy40: seatings, counts, and what does not change them."""

import hashlib
import json
from typing import Any

import numpy as np
import pytest

import agents
from agents.match import AgentError
from agents.match40 import (
    SIDE_COUNTS,
    Games,
    MatchResult,
    contests,
    games_of_deal,
    play_games,
    play_match,
    sides_of,
    summarise,
)
from gin_env.rummy40 import engine
from gin_env.rummy40.actions import DRAW, TAKE
from gin_env.rummy40.record import Record
from gin_env.rummy40.view import View, observe

RULES = {2: "rummy40", 4: "rummy40:seats=4"}


def make(name: str) -> agents.Agent:
    return agents.make(name, game="rummy40")


def play(a: str, b: str, **options: Any) -> MatchResult:
    return play_match(make(a), make(b), **options)


class Stubborn:
    """Returns what it was told to, whatever is legal."""

    name = "stubborn"
    game = "rummy40"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        mask[:] = 1  # to no avail
        return np.full(view.size, self.answer)


# ----------------------------------------------------------------------------------------------------------- seatings


def test_both_sides_have_every_seat_equally_often() -> None:
    assert sides_of(np.arange(4), 2).tolist() == [[0, 1], [1, 0]] * 2
    four = sides_of(np.arange(16), 4)
    assert four[:8].tolist() == four[8:].tolist()
    assert four[:4].tolist() == (1 - np.eye(4)).tolist()
    assert (four[4:8] == 1 - four[:4]).all()
    for seats in (2, 4):
        games = sides_of(np.arange(games_of_deal(seats)), seats)
        assert len({tuple(row) for row in games.tolist()}) == len(games)
        assert (games.sum(axis=0) == len(games) / 2).all()


@pytest.mark.parametrize("seats", [2, 4])
@pytest.mark.parametrize("name", ["greedy", "patient"])
@pytest.mark.parametrize("whole_matches", [False, True])
def test_two_copies_of_one_bot_are_level(name: str, seats: int, whole_matches: bool) -> None:
    result = play(name, name, deals=6 if whole_matches else 40, rules=RULES[seats], match=whole_matches)
    assert result.games.any()
    assert result.points_per_hand == 0
    assert result.ci95 == (0, 0)  # the deals do not vary
    assert result.win_rate == 0.5
    assert result.win_ci95 == (0.5, 0.5)
    assert result.hands_won == result.hands_lost == result.hands / 2
    assert result.behaviour[0] == result.behaviour[1]
    assert result.to_json()["points_per_hand"] == 0
    games = play_games(make(name), make(name), deals=5, rules=RULES[seats])
    assert (games.points.reshape(5, -1, seats).sum(axis=2) == 0).all()  # whoever is alone, in all seats
    assert (contests(games, False) == 1).all()


@pytest.mark.parametrize("seats", [2, 4])
def test_the_other_side_sees_the_mirror_image(seats: int) -> None:
    options: dict[str, Any] = {"deals": 40, "rules": RULES[seats], "seed": 2}
    there, back = play("greedy", "patient", **options), play("patient", "greedy", **options)
    assert there.points_per_hand == -back.points_per_hand != 0
    assert there.ci95 == (-back.ci95[1], -back.ci95[0])
    assert (there.hands_won, there.games_won) == (back.hands_lost, back.games_lost)
    assert there.behaviour == back.behaviour[::-1]
    assert there.deck_hash == back.deck_hash
    games = [play_games(make(a), make(b), **options) for a, b in (("greedy", "patient"), ("patient", "greedy"))]
    turned = games[0].mirrored()
    for name in ("points", "hands", "won", "counts"):
        assert np.array_equal(getattr(turned, name), getattr(games[1], name)), name
    assert (contests(games[0], False) + contests(games[1], False) == 2).all()


@pytest.mark.parametrize("seats", [2, 4])
def test_against_a_plain_replay(seats: int) -> None:
    """One table at a time, each deal from its own tables, everything counted by hand."""
    sides, deals, rules = (make("patient"), make("greedy")), 15, RULES[seats]
    result = play_match(*sides, deals=deals, seed=3, rules=rules)
    keys = np.zeros(1, dtype=np.uint64)  # neither uses them
    digest = hashlib.sha256()
    count = {name: [0.0, 0.0] for name in ("hands", "opened", "out", "left", "draws", "takes", "won")}
    places: list[list[list[float]]] = [[[] for _ in range(seats)] for _ in sides]
    endings, alone = [], []
    for deal in range(deals):
        for game in range(games_of_deal(seats)):
            table = engine.new_tables(rules, 1, seed=3, first=deal)
            dealer = int(table["dealer"][0])
            if game == 0:
                digest.update(bytes([dealer, *table["deck"][0, : {2: 54, 4: 108}[seats]].tolist()]))
            lone, seat = divmod(game, seats)
            side_of = [lone if one == seat else 1 - lone for one in range(seats)]
            over = np.zeros(1)
            while not over[0]:
                side = side_of[int(table["mover"][0])]
                action = sides[side].act(observe(table), engine.legal(table), keys)
                count["draws"][side] += int(action[0] == DRAW)
                count["takes"][side] += int(action[0] == TAKE)
                points, over = engine.step(table, action)
            alone.append(points[0, seat] * (1 - 2 * lone))
            assert result.games[deal, game] == pytest.approx(alone[-1])
            ended = engine.result(table)
            assert ended is not None
            endings.append(ended.ending)
            best = [one for one in range(seats) if ended.penalties[one] == min(ended.penalties)]
            for one, side in enumerate(side_of):
                count["hands"][side] += 1
                count["opened"][side] += int(table["opened"][0, one])
                count["out"][side] += ended.out == one
                count["left"][side] += ended.penalties[one]
                count["won"][side] += (one in best) / len(best)
                places[side][(one - dealer - 1) % seats].append(points[0, one])
    assert result.deck_hash == digest.hexdigest()
    assert result.points_per_hand == pytest.approx(np.mean(alone))
    assert result.hands == len(endings)
    assert result.stock == endings.count("stock") / result.hands
    assert result.truncated == endings.count("truncated") / result.hands
    assert (result.hands_won, result.hands_lost) == pytest.approx(count["won"])
    assert (result.games_won, result.games_lost) == pytest.approx(count["won"])
    for side, got in enumerate(result.behaviour):
        hands, drawn = count["hands"][side], count["draws"][side] + count["takes"][side]
        assert got.opened == count["opened"][side] / hands
        assert got.out == count["out"][side] / hands
        assert got.left == count["left"][side] / hands
        assert got.penalties == 0
        assert got.turns == drawn / hands
        assert got.takes == count["takes"][side] / drawn
        assert got.places == pytest.approx([np.mean(some) for some in places[side]])
        assert result.speed[side].decisions > drawn


# ------------------------------------------------------------------------------------------------ what changes nothing


@pytest.mark.parametrize("seats", [2, 4])
@pytest.mark.parametrize("batch", [1, 7, 64])
def test_batch_changes_nothing(seats: int, batch: int) -> None:
    options: dict[str, Any] = {"deals": 9, "seed": 11, "rules": RULES[seats]}
    whole, part = play("random", "greedy", **options), play("random", "greedy", batch=batch, **options)
    assert part == whole
    assert (part.games == whole.games).all()


@pytest.mark.parametrize("whole_matches", [False, True])
def test_deals_may_be_played_in_parts(whole_matches: bool) -> None:
    options: dict[str, Any] = {"seed": 4, "rules": "rummy40:seats=4,limit=40", "match": whole_matches}
    sides = make("random"), make("greedy")
    whole = play_games(*sides, deals=6, **options)
    joined = Games.join([play_games(*sides, first=first, deals=2, batch=3, **options) for first in (4, 0, 2)])
    assert isinstance(joined, Games)
    for name in ("first", "points", "hands", "won", "counts"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name)), name
    timed = SIDE_COUNTS.index("timed")
    assert np.array_equal(np.delete(joined.sides, timed, axis=1), np.delete(whole.sides, timed, axis=1))


# ------------------------------------------------------------------------------------------------------ whole matches


@pytest.mark.parametrize("seats", [2, 4])
def test_matches_to_the_limit(seats: int) -> None:
    records: list[Record] = []
    rules = RULES[seats] + (":" if seats == 2 else ",") + "limit=60"
    result = play("greedy", "random", deals=4, rules=rules, match=True, seed=3, record=records.append)
    games = 4 * games_of_deal(seats)
    assert len(records) == games
    assert result.hands == sum(len(record.hands) for record in records) > games
    won = 0.0
    for number, record in enumerate(records):
        *_, tables = engine.replay(record.line())
        assert tables["match_over"][0]
        side_of = sides_of(np.array([number]), seats)[0]
        winners = tables["match_winners"][0, :seats]
        won += winners[side_of == 0].sum() / winners.sum()
        names = ", ".join(f"seat {seat} {('greedy', 'random')[side]}" for seat, side in enumerate(side_of))
        assert record.comment == f"deal {number // games_of_deal(seats)}: {names}"
    assert result.games_won == pytest.approx(won)
    assert result.win_rate == pytest.approx(won / games)
    assert result.win_rate > 0.7
    assert result.points_per_hand == pytest.approx(result.games.sum() / result.hands)


def test_matches_without_end_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.duplicate.MAX_HANDS", 2)
    result = play("greedy", "random", deals=2, match=True, rules="rummy40:limit=10000,seats=4")
    assert result.hands == 32
    assert result.win_rate == 0.5
    assert result.win_ci95 == (0.5, 0.5)


# ---------------------------------------------------------------------------------------------------- results, errors


def test_a_result_is_json() -> None:
    result = play("greedy", "random", deals=30, rules="rummy40:seats=4,opening=0")
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert told["rules"]["name"] == "rummy40:seats=4,opening=0"
    assert told["seats"] == 4
    assert told["behaviour"]["a"]["out"] == result.behaviour[0].out
    assert told["hands_won"] + told["hands_lost"] == pytest.approx(told["hands"]) == 240
    low, high = result.ci95
    assert 20 < low < result.points_per_hand < high < 60
    assert play("greedy", "random", deals=1).to_json()["ci95"] == [None, None]


@pytest.mark.parametrize("seats", [2, 4])
@pytest.mark.parametrize("whole_matches", [False, True])
def test_illegal_actions_forfeit_the_game(seats: int, whole_matches: bool) -> None:
    options: dict[str, Any] = {"deals": 5, "rules": RULES[seats], "match": whole_matches}
    result = play_match(make("greedy"), Stubborn(5), forfeits=True, **options)
    games = 5 * games_of_deal(seats)
    assert result.forfeits == (0, games)
    assert result.hands == games
    # With four the one who sits alone among the stubborn shares the win with two of them.
    assert result.win_rate == (1 if seats == 2 else pytest.approx((4 + 4 / 3) / 8))
    assert result.points_per_hand > 0
    assert result.behaviour[0].left == 0
    with pytest.raises(
        AgentError, match=r"'stubborn' played 'discard 3S' \(action 5\) in game . of deal 0.*legal: draw"
    ):
        play_match(make("greedy"), Stubborn(5), **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"deals": 0}, "deals is 0; expected at least 1"),
        ({"deals": 1, "batch": 0}, "batch is 0; expected at least 1 game"),
        ({"deals": 1, "rules": "rummy40:limit=none", "match": True}, "have no limit"),
        ({"deals": 1, "rules": "cardpuzzle"}, "'cardpuzzle'"),
        ({"deals": 1, "seed": -1}, "seed"),
    ],
)
def test_bad_arguments(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        play("greedy", "random", **options)


def test_a_player_of_gin_is_refused() -> None:
    with pytest.raises(ValueError, match="agent 'greedy' plays gin; expected one that plays rummy40"):
        play_match(agents.make("greedy"), make("greedy"), deals=1)


def test_counts_add_up() -> None:
    games = play_games(make("patient"), make("random"), deals=10, rules=RULES[4])
    a, b = games.side(0), games.side(1)
    assert a["seats"] == b["seats"] == 10 * 8 * 2
    assert a["won"] + b["won"] == 12 * 80
    assert sum(a[f"seats_{k}"] for k in range(1, 5)) == a["seats"]
    assert sum(side[f"points_{k}"] for side in (a, b) for k in range(1, 5)) == 0
    known: dict[str, Any] = {"a": "a", "b": "b", "versions": ("1", "1"), "rules": "", "fingerprint": ""}
    result = summarise(games, **known, match=False, seed=0, deck_hash="")
    assert result.points_per_hand == pytest.approx(games.points.sum() / 3 / 80)
