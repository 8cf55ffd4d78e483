"""The PettingZoo door of Rummy40. What it shares with that of gin is tested in `tests.test_aec`."""

import copy
import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import api_test, seed_test
from pettingzoo.test.state_test import test_state as check_state
from pettingzoo.test.state_test import test_state_space as check_state_space

from gin_env.rummy40 import IllegalAction, aec, as_rules, engine, preset, view
from gin_env.rummy40.actions import DISCARD, DRAW, LAY, PLACE, TAKE, TAKE_BACK
from gin_env.rummy40.spaces import observation_space, state_space
from tests.rummy40_hands import choose
from tests.test_aec import observes_a_dictionary, random_player, run

TWO, FOUR = "rummy40", "rummy40:seats=4"
# Short hands, of which many end in few steps.
SHORT = "rummy40:hand_size=4,opening=0,jokers=2"
# A pack of one suit, six cards in the stock: nobody can open with 40 points, and hands end when the stock is out.
LITTLE = "rummy40:suits=1,jokers=0,hand_size=3,opening=40,first_dealer=1"


def eager_player(seed: int) -> Callable[[str, dict[str, np.ndarray]], int]:
    """Lays cards where it can."""
    rng = Random(seed)

    def choose(agent: str, observation: dict[str, np.ndarray]) -> int:
        legal = np.flatnonzero(observation["action_mask"])
        return rng.choice((legal[legal >= LAY] if (legal >= LAY).any() else legal).tolist())

    return choose


# ------------------------------------------------------------------------------------------------ PettingZoo's tests

OPTIONS = [
    {"rules": TWO},
    {"rules": FOUR},
    {"rules": "rummy40:opening=0", "match": True, "illegal": "terminate"},
    {"rules": "rummy40:seats=4,opening=50,wrong_opening=penalty", "match": True, "render_mode": "ansi"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@observes_a_dictionary
def test_api(options: dict[str, Any]) -> None:
    api_test(aec.env(**options), num_cycles=300)
    api_test(aec.raw_env(**options), num_cycles=300)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_seed(options: dict[str, Any]) -> None:
    seed_test(lambda: aec.env(**options), num_cycles=200)


@pytest.mark.parametrize("rules", [TWO, FOUR])
def test_state_space(rules: str) -> None:
    check_state_space(aec.env(rules=rules))
    check_state(aec.env(rules=rules, illegal="terminate"), num_cycles=20)  # it plays without the mask


# ------------------------------------------------------------------------------------- the engine's game, seat by seat


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("rules", [TWO, FOUR, SHORT, SHORT + ",seats=4"])
def test_it_is_the_engines_game(rules: str, match: bool) -> None:
    """Observations, masks, rewards, results and records are those of the engine, hand after hand."""
    env = aec.env(rules=rules, match=match)
    env.reset(seed=5)
    tables = engine.new_tables(rules, 1, seed=5, match=match)
    agents = env.possible_agents
    player = eager_player(1)
    assert agents == [f"seat_{seat}" for seat in range(as_rules(rules).seats)]
    paid, hands = dict.fromkeys(agents, 0.0), 0
    for agent in env.agent_iter():
        for seat, name in enumerate(agents):
            observations, masks = view.look(tables, seat)
            told = env.observe(name)
            assert told["observation"].tobytes() == observations.tobytes()
            assert told["action_mask"].tobytes() == masks.tobytes()
            assert told["action_mask"].any() == (name == agent)
            assert told in env.observation_space(name)
        assert np.array_equal(env.state(), view.state(tables)[0])
        action = player(agent, env.observe(agent))
        points, over = engine.step(tables, [action])
        env.step(action)
        assert env.rewards == dict(zip(agents, points[0].tolist(), strict=True))
        paid = {name: paid[name] + env.rewards[name] for name in agents}
        *_, replayed = engine.replay(env.unwrapped.record())
        if over[0] == engine.GOING_ON:
            assert replayed["hands"].tobytes() == tables["hands"].tobytes()
            continue
        hands += 1
        result = engine.result(tables)
        assert result is not None
        for name in agents:
            info = env.infos[name]
            assert info["ending"] == result.ending
            assert info["out"] == (None if result.out is None else agents[result.out])
            assert tuple(info["penalties"].values()) == result.penalties
            assert tuple(info["hands"].values()) == result.hands
            assert info["turns"] == result.turns
        assert abs(sum(env.rewards.values())) < 1e-9
        if over[0] == engine.EPISODE_ENDED:
            break
        engine.deal(tables)
    assert all(env.terminations.values())
    assert not any(env.observe(name)["action_mask"].any() for name in agents)
    info = env.infos["seat_0"]
    assert hands > 1 if match else hands == 1
    assert ("scores" in info) == match
    if match:
        assert max(info["scores"].values()) >= 100
        best = min(info["scores"].values())
        assert info["match_winners"] == [name for name in agents if info["scores"][name] == best]
        others = len(agents) - 1
        for name in agents:
            own = info["scores"][name]
            assert paid[name] == pytest.approx((sum(info["scores"].values()) - own) / others - own)


@pytest.mark.parametrize("rules", [TWO, FOUR])
def test_final_rewards_reach_all_once(rules: str) -> None:
    env = aec.env(rules=rules)
    for seed in range(3):
        env.reset(seed=seed)
        told = run(env, eager_player(seed))
        penalties = told["seat_0"][-1][-1]["penalties"]
        mean = sum(penalties.values()) / len(penalties)
        for agent, calls in told.items():
            factor = len(penalties) / (len(penalties) - 1)
            assert sum(reward for _, reward, *_ in calls) == pytest.approx(factor * (mean - penalties[agent]))
            assert [terminated for _, _, terminated, _, _ in calls].count(True) == 1
        assert env.agents == []


def test_cap_on_draws_truncates() -> None:
    env = aec.env(rules=preset("rummy40", draw_cap=4, seats=4))
    env.reset(seed=1)
    for calls in run(env, random_player(1)).values():
        _, reward, terminated, truncated, info = calls[-1]
        assert (reward, terminated, truncated, info["ending"]) == (0, False, True, "truncated")


# --------------------------------------------------------------------------------------------- the opening minimum


def wrong_opening(env: Any) -> dict[str, Any]:
    """Plays a hand in which seat 0 lays too little and takes it back, and everybody else draws and throws."""
    # Seat 0 gets the ace, 3 and 5, seat 1 the 2, 4 and 6 of spades; the 7 is turned up, and seat 0 draws the 8...
    deck = [0, 9, 1, 10, 2, 11, 12, *range(3, 9)]
    env.reset(seed=1, options={"deck": deck, "dealer": 1})
    tried = False
    for agent in env.agent_iter():
        observation, _, terminated, truncated, info = env.last()
        if terminated or truncated:
            return info
        legal = np.flatnonzero(observation["action_mask"])
        lays = legal[(legal >= LAY) & (legal < PLACE)]
        if TAKE_BACK in legal:
            assert not ((legal >= DISCARD) & (legal < LAY)).any()  # it cannot end the turn as it is
            env.step(TAKE_BACK)
            tried = True
            after = np.flatnonzero(env.observe(agent)["action_mask"])
            assert ((after >= DISCARD) & (after < LAY)).all()  # nor try again
        elif lays.size and not tried:
            env.step(int(lays[0]))
        else:
            # The highest card it holds: so seat 0 keeps the run.
            env.step(DRAW if DRAW in legal else int(legal[legal < LAY][-1]))
    raise AssertionError("the hand did not end")


def test_without_a_mask_for_the_opening_it_costs_points() -> None:
    masked = wrong_opening(aec.env(rules=LITTLE))
    env = aec.env(rules=LITTLE + ",wrong_opening=penalty")
    wrong = wrong_opening(env)
    assert masked["hands"] == wrong["hands"] == {"seat_0": "AS 2S 3S", "seat_1": wrong["hands"]["seat_1"]}
    assert masked["ending"] == wrong["ending"] == "stock"
    assert masked["penalties"]["seat_0"] == 6
    assert wrong["penalties"] == masked["penalties"] | {"seat_0": 26}


# ------------------------------------------------------------------------------------------ resets, seeds, illegal


def test_reset_in_the_middle_of_a_match_starts_another() -> None:
    env = aec.raw_env(rules=SHORT, match=True)
    env.reset(seed=3)
    player = eager_player(3)
    while not env.tables["scores"].any():
        env.step(player(env.agent_selection, env.observe(env.agent_selection)))
    env.reset()
    assert not env.tables["scores"].any()
    assert not any(env.infos.values())


@pytest.mark.parametrize("action", [TAKE_BACK, -1, 1987, DISCARD])
def test_illegal_raises_and_changes_nothing(action: int) -> None:
    env = aec.env(rules=FOUR)
    env.reset(seed=1)
    before, agent = env.unwrapped.tables.tobytes(), env.agent_selection
    with pytest.raises(IllegalAction, match="legal: draw, take"):
        env.step(action)
    assert env.unwrapped.tables.tobytes() == before
    assert env.agent_selection == agent
    env.step(TAKE)


@pytest.mark.parametrize("action", [TAKE_BACK, -1, 1987])
def test_illegal_terminates_for_all(action: int) -> None:
    env = aec.env(rules=FOUR, illegal="terminate", illegal_penalty=60.0)
    env.reset(seed=1)
    offender = env.agent_selection
    told = run(env, lambda agent, observation: action)
    for agent, calls in told.items():
        observation, _, terminated, truncated, info = calls[-1]
        assert sum(reward for _, reward, *_ in calls) == (-60 if agent == offender else 0)
        assert (terminated, truncated) == (True, False)
        assert info == {"ending": "illegal", "offender": offender, "illegal_action": action}
        assert not observation["action_mask"].any()
    env.reset()
    assert env.observe(env.agent_selection)["action_mask"].any()


def test_pickled_in_the_middle_of_a_game_it_goes_on_the_same() -> None:
    env = aec.env(rules=FOUR)
    env.reset(seed=1)
    run(env, eager_player(1), limit=30)
    for again in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        ours = copy.deepcopy(env)
        assert data_equivalence(run(ours, eager_player(2)), run(again, eager_player(2)), exact=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": "cardpuzzle"}, "is no preset"),
        ({"rules": "rummy40:seats=3"}, "seats is 3"),
        ({"illegal": "ignore"}, "'raise' or 'terminate'"),
        ({"render_mode": "pygame"}, "expected None, 'ansi', 'human' or 'rgb_array'"),
    ],
    ids=str,
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aec.env(**options)


# -------------------------------------------------------------------------------------------------------- spaces


@pytest.mark.parametrize(
    "rules",
    [
        TWO,
        FOUR,
        SHORT + ",limit=20,joker_points=1000",
        "rummy40:seats=4,opening=50,wrong_opening=penalty,opening_penalty=1000,limit=500",
        "rummy40:packs=2,jokers=4,opening=0,stealing=any,adding=any,draw_cap=200",
        LITTLE + ",wrong_opening=penalty",
    ],
)
@pytest.mark.parametrize("match", [False, True])
def test_spaces_hold_any_position(rules: str, match: bool) -> None:
    """Every observation and state, of each seat, is within the bounds; and some reach them."""
    played = as_rules(rules)
    space, hidden = observation_space(played), state_space(played)
    tables = engine.new_tables(played, 32, seed=1, match=match)
    chosen = np.empty(32, dtype=np.int64)
    most = np.zeros(space.shape, dtype=np.float32)
    for turn in range(400):
        for seat in range(played.seats):
            observations, _ = view.look(tables, seat)
            assert (observations >= 0).all()
            most = np.maximum(most, observations.max(axis=0))
        states = view.state(tables)
        assert hidden.shape == states.shape[1:]
        assert states.min() >= 0
        assert states.max() <= hidden.high.max()
        eager = np.arange(32) % 2 == turn // 50 % 2
        choose(engine.legal(tables), engine.decision_keys(7, tables), eager, chosen)
        engine.step(tables, chosen, redeal=True)
    assert (most <= space.high).all()
    assert (most[: 52 * played.seats] == space.high[: 52 * played.seats]).any()
