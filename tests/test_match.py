"""Duplicate matches and their reports."""

import dataclasses
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents import match
from agents.match import AgentError, Games, MatchResult, pair_interval, play_games, play_match
from agents.result import SIDE_COUNTS
from experiments.files import write_json
from experiments.report import headline, match_table
from gin_env import engine
from gin_env.actions import DRAW, TAKE
from gin_env.record import Record
from gin_env.rules import preset
from gin_env.tables import OVER
from gin_env.view import View, observe


class Recorder:
    """Plays as another agent and keeps what it was given."""

    def __init__(self, name: str) -> None:
        self.inner = agents.make(name)
        self.name = f"recorded {name}"
        self.keys: list[int] = []

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        assert view.shape == rng.shape == mask.shape[:1]
        assert view["to_move"].all()
        assert mask.any(axis=1).all()
        self.keys += rng.tolist()
        return self.inner.act(view, mask, rng)


class Stubborn:
    """Returns what it was told to, whatever is legal."""

    name = "stubborn"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        mask[:] = 1  # to no avail
        return np.full(view.size, self.answer)


def play(a: str, b: str, **options: Any) -> MatchResult:
    return play_match(agents.make(a), agents.make(b), **options)


# ------------------------------------------------------------------------------------------------- duplicate deals


@pytest.mark.parametrize("name", ["greedy", "gin-only", "early-knock"])
def test_two_copies_of_one_bot_are_level_d01(name: str) -> None:
    result = play(name, name, deals=50)
    assert (result.games.sum(axis=1) == 0).all()
    assert result.games.any()
    assert result.points_per_hand == 0
    assert result.ci95 == (0, 0)  # the pairs do not vary
    assert result.hands_won == result.hands_lost
    assert result.behaviour[0] == result.behaviour[1]


def test_both_games_of_a_deal_use_one_deck_d05(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[int, tuple[int, list[int]]] = {}
    enter = match._Book.enter

    def spy(book: Any, numbers: np.ndarray, tables: np.ndarray) -> None:
        for number, table in zip(numbers, tables, strict=True):
            seen[int(number)] = int(table["dealer"]), table["deck"].tolist()
        enter(book, numbers, tables)

    monkeypatch.setattr(match._Book, "enter", spy)
    result = play("greedy", "random", deals=40, seed=5, batch=7)
    assert sorted(seen) == list(range(80))
    digest = hashlib.sha256()
    dealt = engine.new_tables("cardpuzzle", 40, seed=5)
    for deal in range(40):
        assert seen[2 * deal] == seen[2 * deal + 1] == (dealt["dealer"][deal], dealt["deck"][deal].tolist())
        digest.update(bytes([seen[2 * deal][0], *seen[2 * deal][1]]))
    assert {dealer for dealer, _ in seen.values()} == {0, 1}
    assert result.deck_hash == digest.hexdigest()

    log = result.to_json()
    assert log["seed"] == 5
    assert log["versions"]["a"]
    assert log["rules"] == {"name": "cardpuzzle", "fingerprint": preset("cardpuzzle").fingerprint}
    assert play("greedy", "random", deals=40, seed=6).deck_hash != result.deck_hash
    assert play("gin-only", "greedy", deals=40, seed=5).deck_hash == result.deck_hash


def test_against_a_plain_replay() -> None:
    """One table at a time, each deal from its own tables, everything counted by hand."""
    a, b, deals, rules = agents.make("early-knock"), agents.make("greedy:knock=6"), 60, "plus20"
    result = play_match(a, b, deals=deals, seed=3, rules=rules)
    keys = np.zeros(1, dtype=np.uint64)  # neither uses them
    draws, takes = [0, 0], [0, 0]
    endings = []
    by_role: dict[str, list[int]] = {"dealer": [], "non-dealer": []}
    for deal in range(deals):
        for seat_of_a in (0, 1):
            table = engine.new_tables(rules, 1, seed=3, first=deal)
            dealer = int(table["dealer"][0])
            over = np.zeros(1)
            while not over[0]:
                side = int(table["mover"][0]) ^ seat_of_a
                action = (a, b)[side].act(observe(table), engine.legal(table), keys)
                draws[side] += int(action[0] in (DRAW, TAKE))
                takes[side] += int(action[0] == TAKE)
                points, over = engine.step(table, action)
            assert result.games[deal, seat_of_a] == points[0, seat_of_a]
            by_role["dealer" if dealer == seat_of_a else "non-dealer"].append(int(points[0, seat_of_a]))
            ended = engine.result(table)
            assert ended is not None
            side_of = [seat_of_a, 1 - seat_of_a]  # by seat: 0 is a where a has the seat 0
            endings.append(
                (
                    ended.ending,
                    None if ended.knocker is None else side_of[ended.knocker],
                    None if ended.winner is None else side_of[ended.winner],
                    0 if ended.knocker is None else ended.deadwood[ended.knocker],
                )
            )

    hands = 2 * deals
    assert result.as_dealer == sum(by_role["dealer"]) / deals
    assert result.as_non_dealer == sum(by_role["non-dealer"]) / deals
    assert result.points_per_hand == pytest.approx(result.games.mean())
    assert (result.hands_won, result.hands_lost, result.hands_drawn) == tuple(
        sum(winner == side for _, _, winner, _ in endings) for side in (0, 1, None)
    )
    assert result.dead == sum(ending == "dead" for ending, *_ in endings) / hands
    assert result.tied == sum(ending == "tie" for ending, *_ in endings) / hands
    for side in (0, 1):
        got = result.behaviour[side]
        knocks = [left for how, who, _, left in endings if who == side and how in ("knock", "undercut", "tie")]
        assert got.knock == len(knocks) / hands
        assert got.knock_deadwood == pytest.approx(np.mean(knocks))
        assert got.gin == sum(who == side and how == "gin" for how, who, _, _ in endings) / hands
        assert got.big_gin == 0
        assert got.undercut_suffered == sum(who == side and how == "undercut" for how, who, _, _ in endings) / hands
        assert got.undercut_made == sum(who == 1 - side and how == "undercut" for how, who, _, _ in endings) / hands
        assert got.turns == draws[side] / hands
        assert got.takes == takes[side] / draws[side]
        assert result.speed[side].decisions > draws[side]
    assert result.behaviour[0].undercut_made > 0


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_batch_changes_nothing(batch: int) -> None:
    whole = play("random", "greedy", deals=45, seed=11)
    part = play("random", "greedy", deals=45, seed=11, batch=batch)
    assert part == whole
    assert (part.games == whole.games).all()


def test_two_random_players_in_any_batch() -> None:
    games = [play("random", "random", deals=20, batch=batch).games.tolist() for batch in (3, 40)]
    assert games[0] == games[1]


def test_keys() -> None:
    """Each decision has a key of its own, whatever the batch, apart from the deals' keys."""
    keys = []
    for batch in (3, 64):
        a, b = Recorder("random"), Recorder("greedy")
        play_match(a, b, deals=30, seed=2, batch=batch)
        keys.append((sorted(a.keys), sorted(b.keys)))
    assert keys[0] == keys[1]
    used = [*keys[0][0], *keys[0][1]]
    assert len(set(used)) == len(used)
    assert not set(used) & set(engine.new_tables("cardpuzzle", 30, seed=2)["key"].tolist())
    other = Recorder("random")
    play_match(other, agents.make("greedy"), deals=30, seed=3)
    assert not set(other.keys) & set(used)


@pytest.mark.parametrize("rules", ["cardpuzzle", "luciano", "plus20", "rummyplus"])
def test_the_other_side_sees_the_mirror_image(rules: str) -> None:
    there, back = (play(*pair, deals=80, rules=rules) for pair in (("greedy", "gin-only"), ("gin-only", "greedy")))
    assert there.points_per_hand == -back.points_per_hand
    assert there.ci95 == (-back.ci95[1], -back.ci95[0])
    assert (there.hands_won, there.hands_lost, there.hands_drawn) == (back.hands_lost, back.hands_won, back.hands_drawn)
    assert (there.as_dealer, there.as_non_dealer) == (-back.as_non_dealer, -back.as_dealer)
    assert there.behaviour == back.behaviour[::-1]
    assert (there.games == -back.games[:, ::-1]).all()
    assert there.deck_hash == back.deck_hash


def test_greedy_against_random() -> None:
    result = play("greedy", "random", deals=500)
    low, high = result.ci95
    assert 40 < low < result.points_per_hand < high < 60
    assert result.hands_won > 980


# -------------------------------------------------------------------------------------------------- whole matches


def test_matches_to_the_target() -> None:
    records: list[Record] = []
    result = play("early-knock", "random", deals=6, rules="eaai", match=True, seed=3, record=records.append)
    assert result.match
    assert result.games_won + result.games_lost + result.games_drawn == 12
    assert result.hands == sum(len(record.hands) for record in records) >= 24
    for game, record in enumerate(records):
        *_, tables = engine.replay(record)
        assert max(tables["scores"][0]) >= 100
        assert f"seat {game % 2} early-knock" in record.comment
    assert result.games_won >= 11
    assert result.points_per_hand == result.games.sum() / result.hands
    assert headline(result).startswith("early-knock wins ")
    both = play("random", "early-knock", deals=6, rules="eaai", match=True, seed=3)
    assert both.points_per_hand < 0
    assert both.deck_hash == result.deck_hash


@pytest.mark.parametrize("name", ["greedy", "early-knock"])
def test_matches_of_one_bot_with_itself_are_level(name: str) -> None:
    result = play(name, name, deals=10, match=True)
    assert result.win_rate == 0.5
    assert result.win_ci95 == (0.5, 0.5)
    assert result.points_per_hand == 0


@pytest.mark.parametrize("whole_matches", [False, True])
def test_deals_may_be_played_in_parts(whole_matches: bool) -> None:
    sides = agents.make("random"), agents.make("greedy")
    options: dict[str, Any] = {"seed": 4, "rules": "eaai", "match": whole_matches}
    whole = play_games(*sides, deals=12, **options)
    parts = [play_games(*sides, first=first, deals=4, batch=3, **options) for first in (8, 0, 4)]
    joined = Games.join(parts)
    for name in ("first", "points", "hands", "won", "counts"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name)), name
    timed = SIDE_COUNTS.index("timed")
    assert np.array_equal(np.delete(joined.sides, timed, axis=1), np.delete(whole.sides, timed, axis=1))
    with pytest.raises(ValueError, match="games of deal 8 follow; expected those of deal 4"):
        Games.join(parts[:2])


def test_matches_without_end_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.duplicate.MAX_HANDS", 3)
    result = play("gin-only", "gin-only", deals=2, match=True, rules="cardpuzzle:target=10000")
    assert result.games_drawn == 4
    assert result.hands == 12
    assert result.win_rate == 0.5


def test_interval_of_matches_by_hand() -> None:
    # 12 points in 6 hands, 2 a hand; the deals lie 6 - 2 * 2 = 2 above and 6 - 4 * 2 = 2 below it.
    mean, (low, high) = pair_interval(np.array([[4, 2], [3, 3]]), np.array([[1, 1], [2, 2]]))
    assert mean == 2
    assert high - mean == pytest.approx(1.959964 * math.sqrt((4 + 4) * 2) / 6, rel=1e-6)
    assert mean - low == pytest.approx(high - mean)


# ---------------------------------------------------------------------------------------------------------- forfeits


@pytest.mark.parametrize("whole_matches", [False, True])
def test_illegal_actions_forfeit_the_game(whole_matches: bool) -> None:
    result = play_match(agents.make("greedy"), Stubborn(107), deals=5, forfeits=True, rules="eaai", match=whole_matches)
    assert result.forfeits == (0, 10)
    assert (result.games_won, result.games_lost) == (10, 0)
    # Each hand ends at its first or second decision: gin and the loser's deadwood.
    assert ((result.games >= 25) & (result.games <= 25 + 100)).all()
    assert result.behaviour[0].gin == 0


def test_errors_forfeit_the_game() -> None:
    class Broken(Stubborn):
        def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            raise RuntimeError("out of order")

    result = play_match(Broken(0), agents.make("greedy"), deals=5, forfeits=True)
    assert result.forfeits == (10, 0)
    with pytest.raises(RuntimeError, match="out of order"):
        play_match(Broken(0), agents.make("greedy"), deals=5)


# ------------------------------------------------------------------------------------------------- agents that watch


class Watcher:
    """Greedy that keeps what it is told of its games."""

    name = "watcher"
    max_games = 3

    def __init__(self) -> None:
        self.inner = agents.make("greedy")
        self.told: dict[int, list[tuple[int, int]]] = {}
        self.most = 0

    def follow(self, views: View, games: np.ndarray, actions: np.ndarray) -> None:
        assert len(set(games.tolist())) == games.size
        self.most = max(self.most, games.size)
        for v, game, action in zip(views, games.tolist(), actions.tolist(), strict=True):
            self.told.setdefault(game, []).append((action, int(v["phase"])))

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        return self.inner.act(view, mask, rng)


@pytest.mark.parametrize("whole_matches", [False, True])
def test_an_agent_may_follow_its_games(whole_matches: bool) -> None:
    watcher = Watcher()
    records: list[Record] = []
    play_match(watcher, agents.make("early-knock"), deals=4, rules="eaai", match=whole_matches, record=records.append)
    assert watcher.most == 3
    for game, record in enumerate(records):
        moves = [move for hand in record.hands for move in (-1, *hand.moves)]
        assert [action for action, _ in watcher.told[game]] == moves
        assert watcher.told[game][-1][1] == OVER
        assert sum(phase == OVER for _, phase in watcher.told[game]) == len(record.hands)


# ---------------------------------------------------------------------------------------------------------- figures


def test_interval_by_hand() -> None:
    # The deals' means are 3, 1 and 6: mean 10/3, variance (1/9 + 49/9 + 64/9) / 2 = 19/3.
    mean, (low, high) = pair_interval(np.array([[10, -4], [0, 2], [6, 6]]))
    assert mean == 10 / 3
    assert high - mean == pytest.approx(1.959964 * math.sqrt(19 / 3 / 3), rel=1e-6)
    assert mean - low == pytest.approx(high - mean)


def test_interval_covers_the_truth() -> None:
    points = np.random.default_rng(1).integers(-30, 32, size=(1000, 50, 2))  # the mean is 0.5
    intervals = [pair_interval(one)[1] for one in points]
    assert 0.92 < np.mean([low <= 0.5 <= high for low, high in intervals]) < 0.98


def test_single_deal() -> None:
    result = play("greedy", "random", deals=1)
    assert result.ci95 == (-math.inf, math.inf)
    assert result.to_json()["ci95"] == [None, None]
    assert "says nothing" in headline(result)


def test_json() -> None:
    result = play("greedy", "random", deals=10, rules="luciano", seed=4)
    data = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert data["a"] == "greedy"
    assert data["b"] == "random"
    assert (data["deals"], data["hands"], data["seed"]) == (10, 20, 4)
    assert data["points_per_hand"] == result.points_per_hand
    assert data["ci95"] == list(result.ci95)
    assert data["hands_won"] + data["hands_lost"] + data["hands_drawn"] == 20
    assert set(data["seats"]) == {"dealer", "non_dealer"}
    assert set(data["endings"]) == {"dead", "truncated", "tied"}
    for part in ("behaviour", "speed", "versions"):
        assert set(data[part]) == {"a", "b"}
    assert data["speed"]["a"]["per_second"] > 0
    assert "games" not in data


def test_records_come_in_the_order_of_the_deals() -> None:
    records: list[Record] = []
    result = play("greedy", "random", deals=40, seed=3, batch=9, record=records.append)
    assert result == play("greedy", "random", deals=40, seed=3)
    assert [record.comment.partition(":")[0] for record in records] == [f"deal {n // 2}" for n in range(80)]
    decks = hashlib.sha256()
    for game, record in enumerate(records):
        (hand,) = record.hands
        if game % 2 == 0:
            decks.update(bytes([hand.dealer, *hand.deck]))
        *_, tables = engine.replay(record)  # which checks the result
        won = int(tables["points"][0]) * {game % 2: 1, -1: 0}.get(int(tables["winner"][0]), -1)
        assert won == result.games[game // 2, game % 2]
    assert decks.hexdigest() == result.deck_hash


def test_progress() -> None:
    calls: list[tuple[int, int]] = []
    play("greedy", "random", deals=30, batch=8, progress=lambda *call: calls.append(call))
    finished = [done for done, _ in calls]
    assert finished == sorted(set(finished))
    assert calls[-1] == (60, 60)
    assert {games for _, games in calls} == {60}


# ----------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"deals": 0}, "deals is 0"),
        ({"deals": 5, "batch": 0}, "batch is 0"),
        ({"deals": 5, "seed": -1}, "seed is -1"),
        ({"deals": 5, "rules": "whist"}, "'whist' is no preset"),
    ],
)
def test_bad_arguments(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        play("greedy", "random", **options)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (1, r"'stubborn' played 'draw' \(action 1\) in game \d of deal \d, which is illegal there; legal: pass, take"),
        (500, r"'stubborn' played 'an action that does not exist' \(action 500\)"),
        (-1, r"action -1"),
        (0.0, r"'stubborn' returned float64"),
        ([[0], [0]], r"shape"),
    ],
)
def test_illegal_action_names_the_agent(answer: Any, says: str) -> None:
    class Wrong(Stubborn):
        def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            return np.array(self.answer) if isinstance(self.answer, list) else super().act(view, mask, rng)

    with pytest.raises(AgentError, match=says):
        play_match(agents.make("greedy"), Wrong(answer), deals=5)


# ---------------------------------------------------------------------------------------------------------- reports


def test_headlines() -> None:
    result = play("greedy", "random", deals=100)
    won = dataclasses.replace(result, points_per_hand=48.57, ci95=(48.2, 48.94), deals=5000)
    assert headline(won) == (
        "greedy beats random by 48.6 points a hand (95 % interval 48.2 to 48.9), 5,000 deals played twice"
    )
    lost = dataclasses.replace(won, points_per_hand=-48.57, ci95=(-48.94, -48.2))
    assert headline(lost) == (
        "random beats greedy by 48.6 points a hand (95 % interval 48.2 to 48.9), 5,000 deals played twice"
    )
    close = dataclasses.replace(won, points_per_hand=0.03, ci95=(-0.04, 0.1))
    assert headline(close) == (
        "greedy and random cannot be told apart: +0.03 points a hand for greedy (95 % interval -0.04 to +0.10), "
        "5,000 deals played twice"
    )
    level = play("greedy", "greedy", deals=10)
    assert headline(level).startswith("greedy (1) and greedy (2) are level")
    assert [column.header for column in match_table(level).columns] == ["", "greedy (1)", "greedy (2)"]


def test_write_json(tmp_path: Path) -> None:
    path = tmp_path / "new" / "result.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"a": math.nan})
    assert json.loads(path.read_text()) == {"a": 1}
    write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert list(path.parent.iterdir()) == [path]
