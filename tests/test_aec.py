"""The PettingZoo door. E.. are the ids of known faults of other libraries."""

import copy
import json
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import api_test, seed_test
from pettingzoo.test.state_test import test_state as check_state
from pettingzoo.test.state_test import test_state_space as check_state_space

import agents
from gin_env import PRESETS, IllegalAction, Rules, aec, engine, preset, view
from gin_env.actions import DISCARD, DRAW, KNOCK, NUM_ACTIONS, PASS, TAKE, parse_action
from gin_env.cards import parse_card, parse_cards
from gin_env.seat import GinRummyEnv
from gin_env.tables import OVER
from gin_env.vector import GinRummyVectorEnv
from tests.test_gymnasium import L04_DECK, deck_of
from tests.test_view import shuffle_hidden

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "data" / "cases.json").read_text())}
KNOCK_KD = KNOCK + parse_card("KD")

# PettingZoo's api_test knows by name which environments observe a dictionary (its own), and says of any other that its
# observation is no array. An observation with an action mask in it is the form that its own card games have.
observes_a_dictionary = pytest.mark.filterwarnings(
    "ignore:Observation is not a NumPy array",
    "ignore:Observation space for each agent probably should be gymnasium.spaces.box",
)


def run(env: Any, choose: Callable[[str, dict[str, np.ndarray]], int], limit: int = 10**9) -> dict[str, list[Any]]:
    """Plays an episode to its end and returns, by agent, what `last` said each time."""
    told: dict[str, list[Any]] = {agent: [] for agent in env.possible_agents}
    for agent in env.agent_iter(limit):
        observation, reward, terminated, truncated, info = env.last()
        told[agent].append((observation, reward, terminated, truncated, info))
        env.step(None if terminated or truncated else choose(agent, observation))
    return told


def random_player(seed: int) -> Callable[[str, dict[str, np.ndarray]], int]:
    rng = Random(seed)
    return lambda agent, observation: rng.choice(np.flatnonzero(observation["action_mask"]).tolist())


def greedy_player(env: Any) -> Callable[[str, dict[str, np.ndarray]], int]:
    greedy = agents.make("greedy")

    def choose(agent: str, observation: dict[str, np.ndarray]) -> int:
        row = view.observe(env.unwrapped.tables)
        return int(greedy.act(row, observation["action_mask"][np.newaxis], np.zeros(1, dtype=np.uint64))[0])

    return choose


def script(actions: Iterable[int]) -> Callable[[str, dict[str, np.ndarray]], int]:
    to_play = iter(actions)
    return lambda agent, observation: next(to_play)


def throw_drawn(env: Any) -> Callable[[str, dict[str, np.ndarray]], int]:
    """Passes, draws from the stock and throws what was drawn."""

    def choose(agent: str, observation: dict[str, np.ndarray]) -> int:
        drawn = int(env.unwrapped.tables["drawn"][0])
        return DISCARD + drawn if drawn >= 0 else PASS if observation["action_mask"][PASS] else DRAW

    return choose


# ------------------------------------------------------------------------------------------------ PettingZoo's tests

OPTIONS = [
    {},
    {"match": True},
    {"illegal": "terminate"},
    {"rules": "plus20", "render_mode": "ansi"},
    {"rules": "openspiel"},
    {"rules": "eaai", "match": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@observes_a_dictionary
def test_api(options: dict[str, Any]) -> None:
    api_test(aec.env(**options), num_cycles=300)
    api_test(aec.raw_env(**options), num_cycles=300)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_seed(options: dict[str, Any]) -> None:
    seed_test(lambda: aec.env(**options), num_cycles=200)


def test_state_space() -> None:
    check_state_space(aec.env())
    check_state(aec.env(illegal="terminate"), num_cycles=20)  # it plays without the mask
    env = aec.env()
    env.reset(seed=4)
    assert env.state().dtype == np.float32
    assert np.array_equal(env.state(), view.state(env.unwrapped.tables)[0])


def test_order_is_enforced() -> None:
    env = aec.env()
    with pytest.raises(AssertionError, match="reset"):
        env.observe("seat_0")
    env = aec.raw_env()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(PASS)


# ------------------------------------------------------------------------------------------------- what a seat sees

# E01: the deck of that case, whose library showed the waiting player the mover's cards.
E01_DECK = parse_cards(
    "5H 3S 5S 4D 7C 4S 8D 7S 8H AC 9D JC AH KH JH QS QD TH QH TS TD AS 2S 6S 8S 9S JS KS 2H 3H 4H 6H 7H 9H AD 2D 3D "
    "5D 6D 7D JD KD 2C 3C 4C 5C 6C 8C 9C TC QC KC"
)


@pytest.mark.parametrize("dealer", [0, 1])
def test_view_e01_of_the_seat_that_is_not_to_move(dealer: int) -> None:
    env = aec.env()
    env.reset(seed=1, options={"deck": E01_DECK, "dealer": dealer})
    waiting = f"seat_{dealer}"
    assert env.agent_selection == f"seat_{1 - dealer}"
    seen = env.observe(waiting)
    own = parse_cards("3S 4D 4S 7S AC JC KH QS TH TS")
    assert set(np.flatnonzero(seen["observation"][:52])) == set(own)
    assert not seen["observation"][view.PLANE["opponent_known"] :][:52].any()
    assert not seen["action_mask"].any()
    # Any of the mover's cards may lie in the stock instead: nothing changes.
    for order in range(50):
        other = copy.deepcopy(env)
        other.unwrapped.tables = shuffle_hidden(env.unwrapped.tables, dealer, Random(order))
        assert other.observe(waiting)["observation"].tobytes() == seen["observation"].tobytes()
        assert other.observe(waiting)["action_mask"].tobytes() == seen["action_mask"].tobytes()
        assert not np.array_equal(other.state(), env.state())


def test_view_e01_no_leak_in_any_position() -> None:
    env = aec.raw_env()
    for seed in range(15):
        env.reset(seed=seed)
        choose = greedy_player(env) if seed % 2 else random_player(seed)
        for agent in env.agent_iter():
            for seat, name in enumerate(aec.AGENTS):
                other = aec.raw_env()
                other.reset(seed=0)
                other.tables = shuffle_hidden(env.tables, seat, Random(seed))
                for key, seen in env.observe(name).items():
                    assert other.observe(name)[key].tobytes() == seen.tobytes()
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                break
            env.step(choose(agent, observation))


@pytest.mark.parametrize("rules", [*PRESETS, "luciano:knocker_melds=manual,layoffs=manual"])
def test_masks_e16(rules: str) -> None:
    """The mover has a legal action and only legal ones, the other has none, and at the end nobody has."""
    env = aec.raw_env(rules=rules)
    env.reset(seed=5)
    rng = Random(5)
    for hand in range(16):
        choose = greedy_player(env) if hand % 4 == 0 else random_player(hand)
        for agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            mask = observation["action_mask"]
            other = env.observe("seat_1" if agent == "seat_0" else "seat_0")["action_mask"]
            assert mask.dtype == other.dtype == np.int8
            assert mask.shape == other.shape == (env.rules.num_actions,)
            assert not other.any()
            if terminated or truncated:
                assert not mask.any()
                break
            assert mask.any()
            assert np.flatnonzero(mask).tolist() == engine.legal_actions(env.tables)
            masked = rng.choice(np.flatnonzero(mask == 0).tolist())
            with pytest.raises(IllegalAction):
                env.step(masked)
            for action in rng.sample(np.flatnonzero(mask).tolist(), min(2, mask.sum())):
                engine.step(env.tables.copy(), [action])
            env.step(choose(agent, observation))
        env.reset()


# --------------------------------------------------------------------------------------------- rewards and endings


def test_final_rewards_e07_reach_both_once() -> None:
    # Case L04: the knocker, who moved last, is undercut for 33.
    env = aec.env()
    env.reset(seed=1, options={"deck": L04_DECK, "dealer": 0})
    assert env.agent_selection == "seat_1"
    told = run(env, script([PASS, PASS, DRAW, KNOCK_KD]))
    assert {agent: sum(reward for _, reward, *_ in calls) for agent, calls in told.items()} == {
        "seat_0": 33,
        "seat_1": -33,
    }
    for calls in told.values():
        assert [terminated for _, _, terminated, _, _ in calls].count(True) == 1
        assert not any(truncated for *_, truncated, _ in calls)
    assert env.agents == []

    env.reset(seed=1, options={"deck": L04_DECK, "dealer": 0})
    for action in (PASS, PASS, DRAW, KNOCK_KD):
        env.step(action)
    assert env.rewards == {"seat_0": 33, "seat_1": -33}
    for action in (DRAW, DISCARD):
        with pytest.raises(ValueError, match="only valid action is None"):
            env.step(action)
    env.step(None)
    env.step(None)
    assert env.agents == []


def test_payoffs_e17_are_zero_sum_with_undercut_and_layoffs() -> None:
    env = aec.env()
    env.reset(seed=1, options={"deck": L04_DECK, "dealer": 1})
    info = run(env, script([PASS, PASS, DRAW, KNOCK_KD]))["seat_1"][-1][-1]
    assert info == {
        "ending": "undercut",
        "knocker": "seat_0",
        "winner": "seat_1",
        "points": 33,
        "deadwood": {"seat_0": 8, "seat_1": 0},
        "melds": {"seat_0": info["melds"]["seat_0"], "seat_1": ("9S TS JS", "8C 9C TC")},
        "layoffs": info["layoffs"],
        "turns": 1,
    }
    assert set(info["melds"]["seat_0"]) == {"7S 7H 7C", "8H 9H TH", "7D 8D 9D"}
    assert dict(zip(info["melds"]["seat_0"], info["layoffs"], strict=True)) == {
        "7S 7H 7C": "",
        "8H 9H TH": "JH",
        "7D 8D 9D": "6D TD JD",
    }
    for seed in range(60):
        env.reset(seed=seed)
        told = run(env, greedy_player(env) if seed % 2 else random_player(seed))
        won = {agent: sum(reward for _, reward, *_ in calls) for agent, calls in told.items()}
        info = told["seat_0"][-1][-1]
        assert sum(won.values()) == 0
        assert abs(won["seat_0"]) == info["points"]
        if info["winner"]:
            assert won[info["winner"]] == info["points"] > 0


def test_dead_hand_e17_is_worth_nothing_and_terminates() -> None:
    env = aec.env()
    env.reset(seed=1, options={"deck": parse_cards(CASES["F06"]["input"]["deck"]), "dealer": 0})
    for calls in run(env, throw_drawn(env)).values():
        assert sum(reward for _, reward, *_ in calls) == 0
        _, _, terminated, truncated, info = calls[-1]
        assert (terminated, truncated) == (True, False)
        assert (info["ending"], info["winner"], info["knocker"], info["points"], info["turns"]) == (
            "dead",
            None,
            None,
            0,
            29,
        )


def test_cap_on_draws_truncates() -> None:
    env = aec.env(rules=preset("cardpuzzle", draw_cap=4))
    env.reset(seed=1)
    for calls in run(env, throw_drawn(env)).values():
        _, reward, terminated, truncated, info = calls[-1]
        assert (reward, terminated, truncated, info["ending"]) == (0, False, True, "truncated")


def test_endless_swapping_f08_truncates() -> None:
    """Case F08: both always take the top card and throw another one."""
    env = aec.env()
    env.reset(seed=8)

    def choose(agent: str, observation: dict[str, np.ndarray]) -> int:
        if observation["action_mask"][TAKE]:
            return TAKE
        return int(np.flatnonzero(observation["action_mask"][DISCARD:KNOCK])[0]) + DISCARD

    expected = CASES["F08"]["expected"]
    for calls in run(env, choose).values():
        _, reward, terminated, truncated, info = calls[-1]
        assert expected["ends"] == f"after {info['turns']} turns"
        assert (info["ending"], reward, info["points"]) == ("truncated", 0, 0)
        assert {"terminated": terminated, "truncated": truncated} == expected["env"]


def test_match_goes_on_to_its_target() -> None:
    env = aec.env(rules=preset("cardpuzzle", target=70), match=True)
    for seed in range(5):
        env.reset(seed=seed)
        told = run(env, greedy_player(env))
        won = {agent: sum(reward for _, reward, *_ in calls) for agent, calls in told.items()}
        info = told["seat_0"][-1][-1]
        scores = info["scores"]
        assert max(scores.values()) >= 70
        assert scores[info["match_winner"]] == max(scores.values())
        assert won["seat_0"] == -won["seat_1"] == scores["seat_0"] - scores["seat_1"]
        # Each agent is told of every hand: as often as hands were played, the one who did not end it as well.
        hands = int(env.unwrapped.tables["hand_number"][0]) + 1
        for calls in told.values():
            assert sum("ending" in info for *_, info in calls) == hands
            assert sum(terminated for _, _, terminated, _, _ in calls) == 1
        env.reset()
        assert env.unwrapped.tables["scores"].tolist() == [[0, 0]]


def test_reset_in_the_middle_of_a_match_starts_another() -> None:
    env = aec.raw_env(match=True)
    env.reset(seed=3)
    choose = greedy_player(env)
    while not env.tables["scores"].any():
        env.step(choose(env.agent_selection, env.observe(env.agent_selection)))
    env.reset()
    assert not env.tables["scores"].any()
    assert not any(env.infos.values())
    assert env.agent_selection == aec.AGENTS[1 - int(env.tables["dealer"][0])]


# ------------------------------------------------------------------------------------------ resets, seeds, illegal


def test_reset_e09_keeps_the_rules_and_the_options() -> None:
    rules = Rules(gin_bonus=40, undercut_bonus=10, knock_limit=7)
    env = aec.env(rules=rules)
    for seed in (None, 1, 0):
        options = {"unknown": [1]}
        env.reset(seed=seed, options=options)
        assert options == {"unknown": [1]}
        assert env.unwrapped.rules == rules
        row = env.unwrapped.tables[0]
        assert (row["rules"]["gin_bonus"], row["rules"]["undercut_bonus"], row["limit"]) == (40, 10, 7)


def test_seeds_e10_seed_0_and_what_follows() -> None:
    one, two = aec.raw_env(), aec.raw_env()
    deals = []
    for seed in (0, None, None, None, None, None):
        one.reset(seed=seed)
        two.reset(seed=seed)
        assert one.tables.tobytes() == two.tables.tobytes()
        assert one.agent_selection == two.agent_selection
        deals.append(one.tables["deck"].tobytes())
    assert len(set(deals)) == 6
    one.reset(seed=0)
    assert one.tables["deck"].tobytes() == deals[0]
    one, two = aec.raw_env(), aec.raw_env()
    one.reset()
    two.reset()
    assert one.tables["deck"].tobytes() != two.tables["deck"].tobytes()
    for seed in (-1, 1 << 64):
        with pytest.raises(ValueError, match="expected a whole number of 0 to"):
            one.reset(seed=seed)


@pytest.mark.parametrize("dealer", [0, 1])
def test_illegal_e14_raises_and_changes_nothing(dealer: int) -> None:
    env = aec.env()
    env.reset(seed=1, options={"deck": L04_DECK, "dealer": dealer})
    env.step(PASS)
    env.step(PASS)
    agent = env.agent_selection
    assert agent == aec.AGENTS[1 - dealer]
    before = env.unwrapped.tables.tobytes()
    for action in (TAKE, PASS, DISCARD, -1, -2, NUM_ACTIONS):
        with pytest.raises(IllegalAction, match="legal: draw"):
            env.step(action)
        assert env.unwrapped.tables.tobytes() == before
        assert env.agent_selection == agent
        assert not any(env.terminations.values())
    with pytest.raises(TypeError, match="expected an integer"):
        env.step(None)
    env.step(DRAW)


@pytest.mark.parametrize("action", [TAKE, -1, NUM_ACTIONS])
@pytest.mark.parametrize("dealer", [0, 1])
def test_illegal_e14_terminates(dealer: int, action: int) -> None:
    env = aec.env(illegal="terminate", illegal_penalty=60.0)
    env.reset(seed=1, options={"deck": L04_DECK, "dealer": dealer})
    offender, other = aec.AGENTS[1 - dealer], aec.AGENTS[dealer]
    told = run(env, script([PASS, PASS, action]))
    assert sum(reward for _, reward, *_ in told[offender]) == -60
    assert sum(reward for _, reward, *_ in told[other]) == 0
    for calls in told.values():
        observation, _, terminated, truncated, info = calls[-1]
        assert (terminated, truncated) == (True, False)
        assert info == {"ending": "illegal", "offender": offender, "illegal_action": action}
        assert not observation["action_mask"].any()
    assert env.agents == []
    # The next episode starts clean, with the non-dealer, who is not always the same seat.
    movers = set()
    for _ in range(20):
        env.reset()
        row = env.unwrapped.tables[0]
        assert env.agent_selection == aec.AGENTS[1 - row["dealer"]]
        assert env.observe(env.agent_selection)["action_mask"][[PASS, TAKE]].all()
        assert not any(env.rewards.values())
        assert not any(env.infos.values())
        movers.add(env.agent_selection)
    assert len(movers) == 2


def test_illegal_e14_in_a_match_takes_back_nothing() -> None:
    env = aec.raw_env(match=True, illegal="terminate")
    env.reset(seed=3)
    choose = greedy_player(env)
    won = {"seat_0": 0.0, "seat_1": 0.0}
    while not env.tables["scores"].any():
        env.step(choose(env.agent_selection, env.observe(env.agent_selection)))
        won = {agent: won[agent] + env.rewards[agent] for agent in won}
    offender, other = env.agent_selection, env.possible_agents[env.agent_selection == "seat_0"]
    env.step(KNOCK)
    assert env.rewards == {offender: -100.0, other: 0.0}
    assert env.last()[1] in (-100.0, won[other])


# ------------------------------------------------------------------------------------------------------ the object


def test_arguments_survive_pickling() -> None:
    options = {
        "rules": preset("plus20", oklahoma=True, target=50),
        "match": True,
        "illegal": "terminate",
        "illegal_penalty": 7.0,
        "render_mode": "ansi",
    }
    for env in (aec.env(**options), aec.raw_env(**options)):
        for again in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
            assert {name: getattr(again.unwrapped, name) for name in options} == options
            again.reset(seed=1)
            run(again, random_player(1), limit=200)


def test_pickled_in_the_middle_of_a_game_it_goes_on_the_same() -> None:
    env = aec.env()
    env.reset(seed=1)
    run(env, random_player(1), limit=20)
    again = pickle.loads(pickle.dumps(env))
    assert data_equivalence(run(env, random_player(2)), run(again, random_player(2)), exact=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": "canasta"}, "is no preset"),
        ({"rules": 7}, "expected a Rules object"),
        ({"illegal": "ignore"}, "'raise' or 'terminate'"),
        ({"illegal_penalty": float("nan")}, "0 or more"),
        ({"render_mode": "pygame"}, "expected None, 'ansi', 'human' or 'rgb_array'"),
    ],
    ids=str,
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aec.env(**options)


def test_observations_are_new_arrays() -> None:
    env = aec.raw_env()
    env.reset(seed=1)
    first = env.observe(env.agent_selection)
    kept = copy.deepcopy(first)
    env.step(PASS)
    env.observe(env.agent_selection)["observation"][:] = -1
    assert data_equivalence(first, kept, exact=True)


def test_render(capsys: pytest.CaptureFixture[str]) -> None:
    env = aec.env(render_mode="ansi")
    env.reset(seed=1, options={"deck": L04_DECK, "dealer": 0})
    text = env.render()
    assert "seat 1, non-dealer" in text
    assert "to move    you: take the upcard or pass" in text
    for action in (PASS, PASS, DRAW, KNOCK_KD):
        env.step(action)
    assert env.unwrapped.tables["phase"][0] == OVER
    assert "you knocked and were undercut: the opponent won 33" in env.render()
    assert capsys.readouterr().out == ""

    env = aec.env(render_mode="human")
    env.reset(seed=1)
    env.step(PASS)
    assert env.render() is None
    assert capsys.readouterr().out.count("gin rummy") == 3

    env = aec.env()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="render_mode='ansi'"):
        assert env.render() is None


# ------------------------------------------------------------------------------------------------- laid by the players

# Case L11, in which the defender lays off two cards, with everything laid by hand. The knocker is the non-dealer.
L11 = CASES["L11"]["input"]
L11_KNOCKER = [*(card for meld in L11["knocker_melds"] for card in meld), *L11["knocker_deadwood_cards"]]
L11_DECK = deck_of(" ".join(L11_KNOCKER), " ".join(L11["defender_cards"]), "4H", "KD")
L11_GAME = [
    ("knocker", "pass"),
    ("defender", "pass"),
    ("knocker", "draw"),
    ("knocker", "knock KD"),
    *(("knocker", f"meld {' '.join(meld)}") for meld in L11["knocker_melds"]),
    ("knocker", "pass"),
    ("defender", "layoff 8S 1"),
    ("defender", "layoff 9S 1"),
    ("defender", "pass"),
    ("defender", "pass"),
]


class Together:
    """An opponent that plays given actions, each at all tables."""

    name = "together"

    def __init__(self, actions: list[int]) -> None:
        self.actions = list(actions)

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        action = self.actions.pop(0)
        assert mask[:, action].all()
        return np.full(view.size, action)


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("learner", ["knocker", "defender"])
def test_manual_game_is_the_same_through_every_door(learner: str, match: bool) -> None:
    """Observations, masks, rewards and results of the engine, the AEC, the Gymnasium and the vector environment."""
    rules = preset("luciano", knocker_melds="manual", layoffs="manual", defender_melds="manual", target=None)
    dealer = 1 if learner == "knocker" else 0  # the learner has seat 0
    moves = [(who, parse_action(name)) for who, name in L11_GAME]
    seats = {"knocker": 1 - dealer, "defender": dealer}

    # The engine itself.
    tables = engine.new_tables(rules, 1, match=match)
    engine.deal(tables, decks=[L11_DECK], dealers=[dealer])
    seen: list[tuple[np.ndarray, np.ndarray]] = []  # by the learner, before each of its actions and at the end
    by_move: list[list[tuple[np.ndarray, np.ndarray]]] = []  # by both seats, before each action
    for who, action in moves:
        assert tables["mover"].tolist() == [seats[who]]
        by_move.append([tuple(array[0] for array in view.look(tables, seat)) for seat in (0, 1)])
        seen += [by_move[-1][0]] if who == learner else []
        points, over = engine.step(tables, [action])
    assert over.tolist() == [engine.EPISODE_ENDED]
    seen.append(tuple(array[0] for array in view.look(tables, 0)))
    assert points[0, seats["knocker"]] == CASES["L11"]["expected"]["deadwood_best"] - 5
    result = engine.result(tables)
    assert result is not None

    # PettingZoo.
    env = aec.env(rules=rules, match=match, render_mode="ansi")
    env.reset(seed=1, options={"deck": L11_DECK, "dealer": dealer})
    for (who, action), looks in zip(moves, by_move, strict=True):
        assert env.agent_selection == aec.AGENTS[seats[who]]
        for seat, agent in enumerate(aec.AGENTS):
            told = env.observe(agent)
            assert (told["observation"].tobytes(), told["action_mask"].tobytes()) == (
                looks[seat][0].tobytes(),
                looks[seat][1].tobytes(),
            )
        assert env.render()
        env.step(action)
    assert env.rewards == dict(zip(aec.AGENTS, points[0].tolist(), strict=True))
    for agent in aec.AGENTS:
        info = env.infos[agent]
        assert (info["ending"], info["turns"], info["layoffs"]) == (result.ending, result.turns, result.layoffs)
        assert tuple(info["melds"].values()) == result.melds
        assert tuple(info["deadwood"].values()) == result.deadwood
        assert env.terminations[agent]
        assert info.get("match_winner") == (aec.AGENTS[seats["knocker"]] if match else None)

    # Gymnasium, one seat and several tables.
    own = [action for who, action in moves if who == learner]
    for_opponent = [action for who, action in moves if who != learner]
    alone = GinRummyEnv(rules=rules, match=match, opponent=Together(for_opponent))
    several = GinRummyVectorEnv(3, rules=rules, match=match, opponent=Together(for_opponent), autoreset_mode="Disabled")
    observation, info = alone.reset(seed=1, options={"deck": L11_DECK, "dealer": dealer})
    observations, infos = several.reset(seed=1, options={"decks": [L11_DECK] * 3, "dealers": [dealer] * 3})
    for place, action in enumerate([*own, None]):
        expected, mask = seen[place]
        assert observation.tobytes() == expected.tobytes()
        assert info["action_mask"].tobytes() == mask.tobytes()
        assert observations.tobytes() == np.tile(expected, (3, 1)).tobytes()
        assert infos["action_mask"].tobytes() == np.tile(mask, (3, 1)).tobytes()
        if action is not None:
            observation, reward, terminated, truncated, info = alone.step(action)
            observations, rewards, several_terminated, several_truncated, infos = several.step([action] * 3)
            assert rewards.tolist() == [reward] * 3
            assert several_terminated.tolist() == [terminated] * 3
            assert not truncated
            assert not several_truncated.any()
    assert terminated
    assert reward == points[0, 0]
    for name, value in (
        ("ending", result.ending),
        ("winner", 1 if learner == "knocker" else -1),
        ("points", result.points),
        ("own_deadwood", result.deadwood[0]),
        ("opponent_deadwood", result.deadwood[1]),
        ("turns", result.turns),
    ):
        assert info[name] == value
        assert infos[name].tolist() == [value] * 3
    assert info.get("match_winner") == (info["winner"] if match else None)
