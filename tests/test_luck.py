"""The luck of the draws: zero on average by construction, and a match without it tells the same with less noise."""

import json

import numpy as np
import pytest

import agents
from agents.base import Agent
from agents.match import MatchResult, identify, play_games, play_match, summarise
from experiments.cli import main
from experiments.luck import FOLDS, MIN_DEALS, NUM_COLUMNS, VALUES, Luck, Reduced, _explained, luck_line
from gin_env import engine
from gin_env.actions import DISCARD, DRAW, KNOCK
from gin_env.cards import from_mask
from gin_env.melds import deadwood, deadwood_after
from gin_env.rules import as_rules
from gin_env.tables import OVER, Tables
from gin_env.view import View, observe


class Gambler:
    """Knocks when it may if its last card is red, and draws blindly: what it does depends on what it drew."""

    name = "gambler"

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        greedy = agents.make("gin-only").act(view, mask, rng)
        knocks = mask[:, KNOCK : KNOCK + 52].argmax(axis=1) + KNOCK
        may = mask[:, KNOCK : KNOCK + 52].any(axis=1) & (view["drawn"] % 26 >= 13)
        greedy = np.where(may, knocks, greedy)
        return np.where(mask[:, DRAW] != 0, DRAW, greedy)


def played(
    a: Agent | str, b: Agent | str, deals: int, rules: str = "cardpuzzle", **options: object
) -> tuple[MatchResult, Luck]:
    """Plays a match, or the deals from the number ``first`` on as one of its own."""
    sides = [agents.make(side) if isinstance(side, str) else side for side in (a, b)]
    luck = Luck(rules, deals, int(options.get("first", 0)))  # type: ignore[call-overload]
    games = play_games(*sides, deals=deals, rules=rules, ended=luck.ended, **options)  # type: ignore[arg-type]
    assert (luck.hands == games.hands).all() or options.get("forfeits")
    known = identify(*sides, rules=as_rules(rules), match=bool(options.get("match")), seed=0, deals=deals)
    return summarise(games, **known), luck


def least_left(hand: int, card: int) -> int:
    after = deadwood_after(np.array([hand | 1 << card], dtype=np.uint64))[0]
    return int(after[after >= 0].min())


def slow_luck(table: np.void) -> np.ndarray:
    """The luck of a hand's draws by seat (2, 2, VALUES), move by move in plain Python."""
    total = np.zeros((2, 2, len(VALUES)))
    size = int(table["rules"]["hand_size"])
    deck = table["deck"][: table["rules"]["deck_size"]].tolist()
    mover = 1 - int(table["dealer"])
    hands = {mover: set(deck[0 : 2 * size : 2]), 1 - mover: set(deck[1 : 2 * size : 2])}
    pile, stock = [deck[2 * size]], deck[2 * size + 1 :]
    for move in table["moves"][: table["num_moves"]].tolist():
        mine = hands[mover]
        if move == 0:
            mover = 1 - mover
        elif move == DRAW:
            other = int(deadwood(np.array([sum(1 << card for card in hands[1 - mover])], dtype=np.uint64))[0])
            values = []
            for card in stock:
                left = least_left(sum(1 << held for held in mine), card)
                may = left <= table["limit"]
                values.append([left, left == 0, may, (other - left) * may, other * (left == 0)])
            worth = np.array(values[0]) - np.mean(values, axis=0)
            total[mover] += [worth, worth * other]
            mine.add(stock.pop(0))
        elif move == 2:
            mine.add(pile.pop())
        elif DISCARD <= move < KNOCK + 52:
            card = (move - DISCARD) % 52
            mine.remove(card)
            pile.append(card)
            mover = 1 - mover
    return total


def hands_of(a: str, b: str, deals: int, rules: str) -> list[tuple[int, np.void]]:
    seen: list[tuple[int, np.void]] = []
    play_games(
        agents.make(a),
        agents.make(b),
        deals=deals,
        rules=rules,
        ended=lambda numbers, tables: seen.extend((int(n), t) for n, t in zip(numbers, tables, strict=True)),
    )
    return seen


@pytest.mark.parametrize("rules", ["cardpuzzle", "luciano:target=none", "openspiel"])
def test_against_plain_python(rules: str) -> None:
    _, luck = played("greedy", "early-knock", MIN_DEALS, rules, batch=37)
    for number, table in hands_of("greedy", "early-knock", 8, rules):
        by_seat = slow_luck(table)
        expected = by_seat if number % 2 == 0 else by_seat[::-1]  # a sits in seat 1 in the second game
        assert luck.columns[number // 2, number % 2] == pytest.approx(expected.ravel(), abs=1e-9)


def at_a_draw(seed: int) -> Tables:
    """A table at which the mover is about to draw from the stock, some turns on."""
    tables = engine.new_tables("cardpuzzle", 1, seed=seed)
    player = agents.make("gin-only")
    keys = np.zeros(1, dtype=np.uint64)
    while True:
        action = player.act(observe(tables), engine.legal(tables), keys)
        if action[0] == DRAW and tables["draws"][0] >= seed % 6:
            return tables
        engine.step(tables, action)
        assert tables["phase"][0] != OVER


@pytest.mark.parametrize("seed", range(6))
def test_any_card_of_the_stock_may_come_and_the_mean_of_its_luck_is_zero(seed: int) -> None:
    tables = at_a_draw(seed)
    at, size = int(tables["stock_at"][0]), 52
    before = Luck("cardpuzzle", MIN_DEALS)
    before.ended(np.array([0]), tables)
    total = np.zeros(NUM_COLUMNS)
    spread = 0.0
    for place in range(at, size):
        other = tables.copy()
        deck = other["deck"][0]
        deck[at], deck[place] = deck[place], deck[at]
        engine.step(other, [DRAW])
        luck = Luck("cardpuzzle", MIN_DEALS)
        luck.ended(np.array([0]), other)
        gained = luck.columns[0, 0] - before.columns[0, 0]
        total += gained
        spread += float(np.abs(gained).sum())
    assert total == pytest.approx(np.zeros(NUM_COLUMNS), abs=1e-9)
    assert spread > 1


@pytest.mark.parametrize(("a", "b"), [("random", "greedy"), (Gambler(), "early-knock"), ("gin-only", Gambler())])
def test_luck_is_zero_on_average_whoever_plays(a: Agent | str, b: Agent | str) -> None:
    _, luck = played(a, b, 2000, seed=11)
    columns = luck.columns.sum(axis=1)
    errors = columns.std(axis=0) / len(columns) ** 0.5
    varied = errors > 0
    assert varied.sum() > NUM_COLUMNS / 2
    assert (np.abs(columns.mean(axis=0)[varied] / errors[varied]) < 4).all()


@pytest.mark.parametrize(("a", "b", "most"), [("gin-only", "greedy", 0.85), ("greedy", "early-knock", 0.9)])
def test_less_noise_and_the_same_mean(a: str, b: str, most: float) -> None:
    parts = [played(a, b, 500, seed=5, first=500 * part) for part in range(6)]
    differences = []
    for result, luck in parts:
        reduced = luck.reduce(result)
        plain, interval = result.points_per_hand, result.ci95
        differences.append((reduced.points_per_hand - plain) / (interval[1] - interval[0]))
        assert reduced.ci95[0] < reduced.points_per_hand < reduced.ci95[1]
    assert np.std(differences) > 0.01
    # Unbiased: over the matches the difference is within its own error of zero.
    assert abs(np.mean(differences)) < 3 * np.std(differences, ddof=1) / len(differences) ** 0.5
    whole = Luck("cardpuzzle", 3000)
    for _, luck in parts[::-1]:
        whole.put(luck)
    result = play_match(agents.make(a), agents.make(b), deals=3000, seed=5)
    reduced = whole.reduce(result)
    plain, interval = result.points_per_hand, result.ci95
    assert reduced.variance_ratio < most
    width = (reduced.ci95[1] - reduced.ci95[0]) / (interval[1] - interval[0])
    assert width**2 == pytest.approx(reduced.variance_ratio)
    assert reduced.hands_saved == round(6000 * (1 / reduced.variance_ratio - 1))


def test_what_is_taken_off_a_deal_does_not_depend_on_its_points() -> None:
    result, luck = played("gin-only", "greedy", 300)
    points, hands = result.games.sum(axis=1).astype(float), np.full(300, 2.0)
    columns = luck.columns.sum(axis=1)
    before = _explained(points, hands, columns)
    points[20] += 60
    moved = _explained(points, hands, columns) != before
    own_fold = np.arange(300) % FOLDS == 20 % FOLDS
    assert not moved[own_fold].any()
    assert moved[~own_fold].all()


def test_what_is_played_at_once_changes_nothing_and_sides_are_mirrored() -> None:
    result, luck = played("gin-only", "greedy", 300, seed=2)
    again, split = played("gin-only", "greedy", 300, seed=2, batch=31)
    assert (split.columns == luck.columns).all()
    assert split.reduce(again) == luck.reduce(result)
    mirrored, mirrored_luck = played("greedy", "gin-only", 300, seed=2)
    there, back = luck.reduce(result), mirrored_luck.reduce(mirrored)
    assert back.points_per_hand == pytest.approx(-there.points_per_hand)
    assert back.variance_ratio == pytest.approx(there.variance_ratio)
    _, later = played("gin-only", "greedy", 250, seed=2, first=50)
    assert (later.columns == luck.columns[50:]).all()


def test_matches() -> None:
    result, luck = played("gin-only", "greedy", 200, "plus20:target=30", match=True)
    reduced = luck.reduce(result)
    plain, interval = result.points_per_hand, result.ci95
    assert luck.hands.mean() > 1.5
    assert abs(reduced.points_per_hand - plain) < interval[1] - interval[0]
    assert 0 < reduced.variance_ratio < 1.2


def test_a_player_against_itself() -> None:
    result, luck = played("greedy", "greedy", 200)
    assert luck.columns.any()
    assert luck.reduce(result) == Reduced(0, (0, 0), 1, 0)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=f"deals is {MIN_DEALS - 1}"):
        Luck.of_match("cardpuzzle", MIN_DEALS - 1)
    result, luck = played("greedy", "random", MIN_DEALS - 1)
    with pytest.raises(ValueError, match=f"deals is {MIN_DEALS - 1}"):
        luck.reduce(result)

    class Stuck:
        name = "stuck"

        def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            return np.full(view.size, -1)

    result, luck = played(Stuck(), "greedy", MIN_DEALS, forfeits=True)
    with pytest.raises(ValueError, match="forfeited"):
        luck.reduce(result)


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["match", "gin-only", "greedy", "--deals", "200"]
    assert main([*words, "--luck", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    result, luck = played("gin-only", "greedy", 200)
    reduced = luck.reduce(result)
    assert told.pop("luck") == reduced.to_json()
    plain = play_match(agents.make("gin-only"), agents.make("greedy"), deals=200).to_json()
    del plain["speed"], told["speed"]
    assert told == plain
    assert main([*words, "--luck"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == luck_line(result, reduced)
    assert main([*words, "--luck", "--json", "--workers", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["luck"] == reduced.to_json()
    assert main(["match", "greedy", "random", "--deals", "5", "--luck"]) == 2
    assert "at least 200" in capsys.readouterr().err


def test_a_hand_has_the_cards_of_the_deck() -> None:
    """What the slow restatement above deals is what the engine deals."""
    table = hands_of("greedy", "random", 1, "cardpuzzle")[0][1]
    dealt = engine.new_tables("cardpuzzle", 1)
    seat = 1 - int(table["dealer"])
    assert sorted(table["deck"][0:20:2].tolist()) == from_mask(int(dealt["hands"][0, seat]))
