"""Players of Rummy40: agents by game, what each docstring says, and that no batch and nothing hidden matters."""

from collections import Counter
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from scipy import stats

import agents
from agents import base
from agents.rummy40 import MOST_MELDS, find_plan
from gin_env.cards import CARD_POINTS
from gin_env.rummy40 import Rummy40Rules, engine, preset
from gin_env.rummy40.actions import ADD_HIGH, ADD_LOW, ADD_SET, JOKER_HIGH, JOKER_LOW, JOKER_SET, MELDS, NUM_MELDS
from gin_env.rummy40.actions import action_name as name_of
from gin_env.rummy40.cards import JOKER, held
from gin_env.rummy40.tables import DRAW_ANY, OVER, Tables
from gin_env.rummy40.testing import shuffle_hidden
from gin_env.rummy40.view import observe
from tests.rummy40_hands import set_up

NAMES = ["random", "greedy", "patient"]
RULES = (
    preset("rummy40"),
    preset("rummy40", seats=4),
    preset("rummy40", seats=4, opening=0, rediscard=True),
    preset("rummy40", opening=50, wrong_opening="penalty", adding="any"),
    preset("rummy40", packs=2, stealing="own", pile="opened"),
    Rummy40Rules(name="small", ranks=6, suits=3, jokers=2, hand_size=4, opening=0),
)


def make(name: str) -> agents.Agent:
    return agents.make(name, game="rummy40")


def keys(count: int, seed: int = 0) -> np.ndarray:
    return engine.mix_keys(seed, np.arange(count))


def played(rules: Rummy40Rules, tables: int, steps: int, seed: int = 0) -> Tables:
    """Returns tables in the midst of hands: by turns a seat plays at random or greedily."""
    t = engine.new_tables(rules, tables, seed=seed)
    players = make("random"), make("greedy")
    for step in range(steps):
        views, masks = observe(t), engine.legal(t)
        choices = [player.act(views, masks, keys(tables, seed=step)) for player in players]
        engine.step(t, np.where((np.arange(tables) + step // 7) % 3 == 0, *choices), redeal=True)
    return t


def choice(name: str, tables: Tables) -> str:
    """Returns the name of what a player does at a table."""
    return name_of(int(make(name).act(observe(tables), engine.legal(tables), keys(1))[0]))


def drawing(rules: str, hand: str, upcard: str, **options: Any) -> Tables:
    """Returns a table at which seat 0 has ten cards and is to draw."""
    tables = set_up(rules, hand, pile=upcard, **options)
    tables["phase"] = DRAW_ANY
    return tables


# ------------------------------------------------------------------------------------------------------ agents by game


def test_names() -> None:
    assert agents.names("rummy40") == base.scripted("rummy40") == sorted(NAMES)
    for name in NAMES:
        agent = make(name)
        assert isinstance(agent, agents.Agent)
        assert (agent.name, base.game_of(agent)) == (name, "rummy40")
        assert base.describe(name, "rummy40").endswith(".")
    assert base.game_of(agents.make("greedy")) == "gin"
    assert "patient" not in agents.names()
    assert make("patient:near=3,turns=2").name == "patient:near=3,turns=2"
    assert make("patient:near=5,turns=3").name == "patient"


@pytest.mark.parametrize(
    ("spec", "game", "says"),
    [
        ("gin-only", "rummy40", "'gin-only' is no agent of rummy40: expected greedy, patient, random, or"),
        ("patient", "gin", "'patient' is no agent: expected .*greedy"),
        ("greedy", "whist", "'whist' is no game: expected gin or rummy40"),
        ("greedy:knock=5", "rummy40", "agent 'greedy:knock=5'"),
        ("patient:near=-1", "rummy40", "near is -1; expected a whole number, 0 to 200"),
        ("patient:turns=1.5", "rummy40", "turns is 1.5; expected a whole number"),
    ],
)
def test_make_errors(spec: str, game: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        agents.make(spec, game=game)


def test_a_folder_of_the_other_game_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_player_of", lambda path: lambda path: agents.make("greedy"))
    assert agents.make(str(tmp_path)).name == "greedy"
    with pytest.raises(ValueError, match="plays gin; expected one that plays rummy40"):
        make(str(tmp_path))


# ------------------------------------------------------------------------------------------------- whatever the player


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.text)
@pytest.mark.parametrize("name", NAMES)
def test_a_choice_depends_on_its_row_alone(name: str, rules: Rummy40Rules) -> None:
    agent, rng = make(name), np.random.default_rng(0)
    for steps in (0, 1, 25, 60):
        t = played(rules, 32, steps, seed=steps)
        views, masks, rows = observe(t), engine.legal(t), keys(32, seed=3)
        together = agent.act(views, masks, rows)
        assert together.dtype == np.int64
        assert masks[np.arange(32), together].all()
        order = rng.permutation(32)
        assert (agent.act(views[order], masks[order], rows[order]) == together[order]).all()
        alone = [agent.act(views[i : i + 1], masks[i : i + 1], rows[i : i + 1])[0] for i in range(32)]
        assert alone == together.tolist()


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.text)
@pytest.mark.parametrize("name", NAMES)
def test_hidden_cards_change_no_choice(name: str, rules: Rummy40Rules) -> None:
    agent, rng = make(name), np.random.default_rng(1)
    changed = 0
    for steps in (3, 20, 41, 66):
        t = played(rules, 16, steps, seed=steps)
        chosen = agent.act(observe(t), engine.legal(t), keys(16))
        for row in range(16):
            other = shuffle_hidden(t.take([row]), int(t["mover"][row]), rng)
            changed += other["deck"].tobytes() != t["deck"][row].tobytes()
            assert agent.act(observe(other), engine.legal(other), keys(16)[[row]])[0] == chosen[row]
    assert changed > 50


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.text)
@pytest.mark.parametrize("name", ["greedy", "patient"])
def test_hands_come_to_an_end(name: str, rules: Rummy40Rules) -> None:
    t = engine.new_tables(rules, 200, seed=5)
    agent = make(name)
    for _ in range(1500):
        going = np.flatnonzero(t["phase"] != OVER)
        if not going.size:
            break
        some = t.take(going)
        actions = np.full(t.size, engine.NO_ACTION)
        actions[going] = agent.act(observe(some), engine.legal(some), keys(going.size))
        engine.step(t, actions)
    assert (t["phase"] == OVER).all()
    assert (t["ending"] == 1).mean() > 0.5  # mostly somebody goes out
    assert not t["booked"].any()  # neither lays what does not reach the minimum


def test_random_is_uniform() -> None:
    count = 20_000
    t = set_up("rummy40:opening=0", "5S 6S 7S 5H 5D 9C KD 2C JK")
    masks = np.repeat(engine.legal(t), count, axis=0)
    chosen = make("random").act(np.repeat(observe(t), count), masks, keys(count, seed=7))
    counts = np.bincount(chosen, minlength=masks.shape[1])
    assert counts.sum() == counts[masks[0] > 0].sum() == count
    assert stats.chisquare(counts[masks[0] > 0]).pvalue > 1e-4


# ---------------------------------------------------------------------------------------------------------------- plan


def best_plan(v: Any, need: int, opened: bool, banned: int) -> tuple[int, int]:
    """Points and cards that are left by the best plan, by trying all: see `agents.rummy40.find_plan`."""
    hand = Counter(held(v["hand"], v["jokers"]))
    fits = v["fits"]
    adds = {card for card in range(52) for place in (ADD_SET, ADD_LOW, ADD_HIGH) if int(fits[place]) >> card & 1}
    joker_place = any(int(fits[place]) for place in (JOKER_SET, JOKER_LOW, JOKER_HIGH))
    values = {card: int(v["rules"]["joker_points"]) if card == JOKER else int(CARD_POINTS[card]) for card in hand}

    def left(rest: Counter[int], may_add: bool) -> tuple[int, int]:
        rest = Counter(rest)
        if may_add:
            rest -= Counter({card for card in rest if card in adds or card == JOKER and joker_place})
        cards = sorted(rest.elements())
        plain = [values[card] for card in cards if card != JOKER]
        return sum(values[card] for card in cards) - max(plain, default=0), len(cards)

    pack = int(v["rules"]["pack"])
    fitting = [
        meld
        for meld in MELDS
        if not Counter(meld.cards) - hand and meld.real & ~pack == 0 and (not meld.stands or meld.stands & pack)
    ]
    best = left(hand, opened)
    for size in range(1, MOST_MELDS + 1):
        for melds in combinations_with_replacement(fitting, size):
            used = Counter(card for meld in melds for card in meld.cards)
            rest = hand - used
            if used - hand or sum(meld.points for meld in melds) < need or not rest:
                continue
            if sum(rest.values()) == 1 and (JOKER in rest or banned in rest and banned not in used):
                continue
            best = min(best, left(rest, True))
    return best


@pytest.mark.parametrize("rules", RULES[:5], ids=lambda rules: rules.text)
def test_the_plan_is_the_best_of_all(rules: Rummy40Rules) -> None:
    lists, melds = np.empty((MOST_MELDS, NUM_MELDS), dtype=np.int64), np.empty(MOST_MELDS, dtype=np.int64)
    laid = 0
    for steps in (1, 12, 33):
        views = observe(played(rules, 30, steps, seed=steps))
        for v in views[views["jokers"] < 2]:
            opened = bool(v["opened"][0])
            need = 0 if opened else rules.opening
            banned = int(v["taken"])
            found = find_plan(v, *v["hand"], int(v["jokers"]), need, opened, banned, lists, melds)
            assert found == best_plan(v, need, opened, banned)
            laid += melds[0] >= 0
            assert set(melds[np.argmax(melds < 0) :]) <= {-1} or (melds >= 0).all()
    assert laid > 2


# -------------------------------------------------------------------------------------------------- greedy, as it says


def test_greedy_opens_as_soon_as_it_may() -> None:
    hand = "TS TH TD 4C 5C 6C 9D 2H KC 7D AS"
    assert choice("greedy", set_up("rummy40", hand, opened=False)) == "lay TS TH TD"
    # 30 and 15 points: enough for 40, not for 50.
    assert choice("greedy", set_up("rummy40:opening=50", hand, opened=False)) == "discard KC"
    assert choice("patient", set_up("rummy40", hand, opened=False)) == "discard KC"


def test_greedy_lays_what_leaves_the_fewest_points() -> None:
    # The kings, 30 points, rather than the run through one of them.
    tables = set_up("rummy40", "JH QH KH KS KD 3C 8D")
    assert choice("greedy", tables) == "lay KS KH KD"
    # A joker is 25 points in hand.
    assert choice("greedy", set_up("rummy40", "5S 5H 9C JK KD 2C")) in {"lay 5S 5H JK"}


def test_greedy_steals_then_adds_the_highest_card() -> None:
    melds = [(0, "5S JK 7S"), (1, "9H 9D JK")]
    assert choice("greedy", set_up("rummy40", "6S 9S 4S QD 3C", melds)) == "steal 9S set"
    assert choice("greedy", set_up("rummy40", "8S 4S QD 3C 2D", melds)) == "add 8S high"
    assert choice("greedy", set_up("rummy40", "JK 4D QD 3C 9H", [(0, "5S 6S 7S")])).startswith("joker")


def test_greedy_throws_the_highest_card_that_helps_nothing() -> None:
    # The queens are two of a set, the ten of clubs fits the table, the eight helps nothing.
    melds = [(1, "7C 8C 9C")]
    assert choice("greedy", set_up("rummy40", "QS QD TC 8H 4D", melds)) == "discard 8H"
    assert choice("greedy", set_up("rummy40", "QS QD TC", melds)) == "discard QD"
    assert choice("greedy", set_up("rummy40", "TC 6C", melds)) == "discard TC"
    # With two packs one of two queens that look alike helps nothing.
    assert choice("greedy", set_up("rummy40:seats=4,opening=100", "QS QS QD 8H 4D", opened=False)) == "discard QS"
    # A joker is kept as long as anything else may go.
    assert choice("greedy", set_up("rummy40", "JK 2D KC")) == "discard KC"


@pytest.mark.parametrize(
    ("hand", "upcard", "melds", "opened", "takes"),
    [
        ("2S 3S 9D KC 7H", "4S", [], True, True),  # makes a meld
        ("2S 3S 9D KC 7H", "5S", [], True, False),
        ("2S 3S 9D KC 7H", "8C", [(0, "5C 6C 7C")], True, True),  # can be added
        ("2S 3S 9D KC 7H", "8C", [(1, "5C 6C 7C")], True, False),  # not to another's meld, with two players
        ("2S 3S 9D KC 7H", "JK", [], True, True),
        ("2S 3S 9D KC 7H", "4S", [], False, True),  # below the minimum, out of reach
        ("QS QH 4C 5C 6C 9D 2H 7D AS KD", "QD", [], False, True),  # opens
    ],
)
def test_what_greedy_takes(hand: str, upcard: str, melds: list[Any], opened: bool, takes: bool) -> None:
    tables = drawing("rummy40", hand, upcard, melds=melds, opened=opened)
    assert choice("greedy", tables) == ("take" if takes else "draw")


# ------------------------------------------------------------------------------------------------- patient, as it says


def test_patient_waits() -> None:
    hand = "TS TH TD 4C 5C 6C 9D 2H KC 7D AS"
    tables = set_up("rummy40", hand, opened=False)
    tables["draws"] = 5  # seat 0 is in its third turn
    tables["num_cards"][0, 1] = 6
    assert choice("patient", tables) == "discard KC"
    later, near = tables.take([0]), tables.take([0])
    later["draws"] = 7
    near["num_cards"][0, 1] = 5
    assert choice("patient", later) == choice("patient", near) == "lay TS TH TD"
    assert choice("patient:turns=4", later) == choice("patient:near=4", near) == "discard KC"
    # It goes out in one turn: ten cards in three melds and one to throw.
    assert choice("patient", set_up("rummy40", "TS TH TD 4C 5C 6C 9D 9H 9S 9C 2H", opened=False)).startswith("lay")


def test_patient_without_patience_is_greedy() -> None:
    for rules in RULES[:3]:
        t = played(rules, 64, 30, seed=2)
        views, masks = observe(t), engine.legal(t)
        greedy, hasty, patient = (make(name).act(views, masks, keys(64)) for name in
                                  ("greedy", "patient:turns=0", "patient:turns=200,near=0"))  # fmt: skip
        assert (greedy == hasty).all()
        waits = greedy != patient
        assert not views["opened"][waits, 0].any()
