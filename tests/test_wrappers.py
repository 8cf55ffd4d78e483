"""Other people's wrappers, vector environments and conversions around the environments; copies of them."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as vector_wrappers
from pettingzoo.test import api_test
from pettingzoo.utils.conversions import aec_to_parallel, turn_based_aec_to_parallel

from agents.bundle import BundleError
from gin_env import aec, preset
from gin_env.actions import BIG_GIN
from gin_env.adapters.masked import MaskedObservation
from gin_env.seat import GinRummyEnv
from gin_env.vector import FunctionOpponent, GinRummyVectorEnv, as_opponent
from gin_env.view import OBSERVATION_SIZE, View
from tests.test_gymnasium import ENV, generators, policy

SHORT = preset("cardpuzzle", knock_limit=50)  # hands of few moves


def last_legal(view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    """An opponent that is a plain function: the last legal action of each row."""
    return mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)


def play(env: Any, steps: int) -> tuple[list[float], list[dict[str, Any]]]:
    """Plays legal actions at one table and returns the returns of the episodes that ended, and their last infos."""
    _, info = env.reset(seed=1)
    env.action_space.seed(1)
    returns, infos, paid = [], [], 0.0
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert observation in env.observation_space
        paid += float(reward)
        if terminated or truncated:
            returns.append(paid)
            infos.append(info)
            env.reset()
            paid = 0.0
    assert len(returns) > 3
    return returns, infos


# ------------------------------------------------------------------------------------------------- Gymnasium, one seat


def test_episode_statistics() -> None:
    returns, infos = play(wrappers.RecordEpisodeStatistics(gymnasium.make(ENV, rules=SHORT)), 80)
    assert [info["episode"]["r"] for info in infos] == returns


@pytest.mark.parametrize(
    "wrap",
    [
        wrappers.NormalizeReward,
        wrappers.NormalizeObservation,
        wrappers.FlattenObservation,
        lambda env: wrappers.FrameStackObservation(env, 3),
        lambda env: wrappers.TransformReward(env, lambda reward: reward / 100),
        lambda env: wrappers.TransformObservation(
            env, lambda seen: 2 * seen, gymnasium.spaces.Box(-30, 30, (OBSERVATION_SIZE,), np.float32)
        ),
    ],
)
def test_wrappers_keep_mask_and_legal_samples(wrap: Callable[[gymnasium.Env], gymnasium.Env]) -> None:
    play(wrap(gymnasium.make(ENV, rules=SHORT)), 60)


def test_time_limit_truncates_without_points() -> None:
    for env in (wrappers.TimeLimit(gymnasium.make(ENV), 5), gymnasium.make(ENV, max_episode_steps=5)):
        env.reset(seed=1)
        env.action_space.seed(1)
        for _ in range(4):
            assert not any(env.step(env.action_space.sample())[2:4])
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert (reward, terminated, truncated) == (0, False, True)
        # It is the wrapper's limit: the hand could go on.
        assert info["action_mask"].any()
        assert "ending" not in info


def test_record_video(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="Gymnasium writes videos with moviepy")
    pytest.importorskip("PIL", reason="pictures are drawn with Pillow")
    env = wrappers.RecordVideo(gymnasium.make(ENV, rules=SHORT, render_mode="rgb_array"), str(tmp_path / "videos"))
    env.reset(seed=1)
    while not any(env.step(env.action_space.sample())[2:4]):
        pass
    env.close()
    assert list((tmp_path / "videos").glob("*.mp4"))


def test_render_collection() -> None:
    pytest.importorskip("PIL", reason="pictures are drawn with Pillow")
    env = wrappers.RenderCollection(gymnasium.make(ENV, render_mode="rgb_array"))
    env.reset(seed=1)
    env.step(env.action_space.sample())
    assert [frame.shape for frame in env.render()] == [(640, 960, 3)] * 2


# -------------------------------------------------------------------------------------------------- Gymnasium, vectors


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_made_of_single_environments(mode: AutoresetMode) -> None:
    """Gymnasium's vectors of the single environment, in this process and in others, play as the native one does."""
    options: dict[str, Any] = {"rules": SHORT, "opponent": last_legal}
    native = GinRummyVectorEnv(3, autoreset_mode=mode, **options)
    made = [
        gymnasium.make_vec(ENV, 3, vectorization_mode=how, vector_kwargs={"autoreset_mode": mode}, **options)
        for how in ("sync", "async")
    ]
    assert [type(envs) for envs in made] == [SyncVectorEnv, AsyncVectorEnv]
    seeds = [4, 5, 6]
    now = native.reset(seed=seeds)
    theirs = [envs.reset(seed=seeds) for envs in made]
    rngs, ended = generators(3), 0
    for _ in range(40):
        assert all(data_equivalence(now, other, exact=True) for other in theirs)
        actions = policy(rngs, now[-1]["action_mask"])
        now = native.step(actions)
        theirs = [envs.step(actions) for envs in made]
        ended += int((now[2] | now[3]).sum())
    assert ended > 10
    for envs in made:
        envs.close()


def test_episode_statistics_of_the_vector() -> None:
    # In SAME_STEP mode Gymnasium 1.2's wrapper leaves out an episode's first step, but for the first episode's.
    envs = vector_wrappers.RecordEpisodeStatistics(gymnasium.make_vec(ENV, 8, rules=SHORT, autoreset_mode="NextStep"))
    envs.reset(seed=1)
    envs.action_space.seed(1)
    paid, ended = np.zeros(8), 0
    for _ in range(60):
        _, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        paid += rewards
        over = terminated | truncated
        if over.any():
            assert np.array_equal(infos["episode"]["r"][over], paid[over])
        ended += over.sum()
        paid[over] = 0
    assert ended > 50


@pytest.mark.parametrize("wrap", [vector_wrappers.NormalizeObservation, vector_wrappers.FlattenObservation])
def test_observation_wrappers_of_the_vector(wrap: Callable[[Any], Any]) -> None:
    envs = wrap(gymnasium.make_vec(ENV, 4, rules=SHORT, autoreset_mode="NextStep"))
    envs.reset(seed=1)
    for _ in range(20):
        observations = envs.step(envs.action_space.sample())[0]
        assert observations.shape == (4, OBSERVATION_SIZE)


def test_reward_wrappers_of_the_vector() -> None:
    envs = vector_wrappers.NormalizeReward(gymnasium.make_vec(ENV, 4, rules=SHORT))
    envs.reset(seed=1)
    envs.action_space.seed(1)
    rewards = np.concatenate([envs.step(envs.action_space.sample())[1] for _ in range(50)])
    assert 0 < np.abs(rewards).max() <= 10


# ------------------------------------------------------------------------------------------------ masks in observations


# Gymnasium's checker, about any environment with a wrapper.
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("options", [{}, {"observation": "obs", "mask": "mask", "infos": False}], ids=str)
def test_masked_observation(options: dict[str, Any]) -> None:
    env = MaskedObservation(GinRummyEnv(rules=SHORT), **options)
    check_env(env, skip_render_check=True)
    assert gymnasium.make(MaskedObservation(gymnasium.make(ENV), **options).spec).observation_space.keys() == (
        env.observation_space.keys()
    )
    observation, info = env.reset(seed=1)
    names = (options.get("observation", "observations"), options.get("mask", "action_mask"))
    assert list(observation) == list(names)
    for _ in range(40):
        assert observation in env.observation_space
        assert np.array_equal(observation[names[1]], env.unwrapped.action_masks())
        assert bool(info) == options.get("infos", True)
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            assert not observation[names[1]].any()
            observation, info = env.reset()


def test_masked_observation_of_something_else() -> None:
    with pytest.raises(ValueError, match="expected Discrete"):
        MaskedObservation(gymnasium.make("Pendulum-v1"))


# ------------------------------------------------------------------------------------------------- a function opponent


@pytest.mark.parametrize(
    "make", [GinRummyEnv, lambda **options: GinRummyVectorEnv(5, **options)], ids=["seat", "vector"]
)
def test_opponent_that_is_a_function(make: Callable[..., Any]) -> None:
    class Same:
        def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            return last_legal(view, mask, rng)

    stories = []
    for opponent in (last_legal, Same(), lambda view, mask, rng: last_legal(view, mask, rng)):
        env = make(rules=SHORT, opponent=opponent)
        env.action_space.seed(1)
        story = [env.reset(seed=2)]
        for _ in range(30):
            story.append(env.step(env.action_space.sample()))
            if make is GinRummyEnv and any(story[-1][2:4]):
                story.append(env.reset())
        stories.append(story)
    assert all(data_equivalence(tuple(stories[0]), tuple(story), exact=True) for story in stories[1:])
    assert repr(as_opponent(last_legal)) == "FunctionOpponent(last_legal)"


def test_opponent_function_by_gymnasium_make() -> None:
    env = gymnasium.make(ENV, rules=SHORT, opponent=last_legal)
    assert isinstance(env.unwrapped.table.opponent, FunctionOpponent)
    play(env, 40)


def test_opponents_that_cannot_act(tmp_path: Path) -> None:
    class Agent:
        def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            return last_legal(view, mask, rng)

    for opponent in (Agent, object(), 7):
        with pytest.raises(ValueError, match=r"no method act\(view, mask, rng\) and is no function"):
            GinRummyEnv(opponent=opponent)
    with pytest.raises(RuntimeError, match="FunctionOpponent.<lambda>. chose an illegal action"):
        play(GinRummyEnv(opponent=lambda view, mask, rng: np.full(len(view), BIG_GIN)), 50)
    with pytest.raises(BundleError):
        GinRummyEnv(opponent=f"agents:{tmp_path}")  # a folder, and no bundle


# ------------------------------------------------------------------------------------------------------------- copies

COPIES: list[Callable[[Any], Any]] = [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]
ARGUMENTS: dict[str, Any] = {
    "rules": preset("plus20", oklahoma=True, target=50),
    "match": True,
    "render_mode": "ansi",
    "opponent": last_legal,
}


def cloudpickled(env: Any) -> Any:
    """Returns a copy by way of cloudpickle, which Gymnasium brings."""
    cloudpickle = pytest.importorskip("cloudpickle")
    return pickle.loads(cloudpickle.dumps(env))


@pytest.mark.parametrize("again", [*COPIES, cloudpickled], ids=["deepcopy", "pickle", "cloudpickle"])
def test_copies_go_on_the_same(again: Callable[[Any], Any]) -> None:
    """In the middle of an episode, with every argument given; the original does not notice."""
    single = {"illegal": "terminate", "illegal_penalty": 7.0}
    for env in (
        GinRummyEnv(**ARGUMENTS, **single),
        gymnasium.make(ENV, **ARGUMENTS, **single),
        GinRummyVectorEnv(4, autoreset_mode="NextStep", copy=False, **ARGUMENTS),
        gymnasium.make(ENV, opponent="agents:random"),
        MaskedObservation(GinRummyEnv(opponent="agents:random")),
    ):
        env.reset(seed=3)
        env.action_space.seed(3)
        for _ in range(7):
            env.step(env.action_space.sample())
        other = again(env)
        assert other.unwrapped.rules == env.unwrapped.rules
        for _ in range(30):
            ours = copy.deepcopy(env.step(env.action_space.sample()))
            theirs = other.step(other.action_space.sample())
            assert data_equivalence(ours, theirs, exact=True)
            assert env.render_mode is None or env.render() == other.render()
            if isinstance(ours[2], bool) and (ours[2] or ours[3]):
                assert data_equivalence(env.reset(), other.reset(), exact=True)


def test_function_without_a_name_needs_cloudpickle() -> None:
    env = GinRummyEnv(opponent=lambda view, mask, rng: last_legal(view, mask, rng))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(env)
    play(cloudpickled(env), 200)


# ---------------------------------------------------------------------------------------------------------- PettingZoo


@pytest.mark.skipif(not hasattr(pettingzoo, "register"), reason="PettingZoo has a registry since 1.27")
@pytest.mark.filterwarnings(
    # PettingZoo's api_test, about any environment but its own that observes a dictionary.
    "ignore:Observation is not a NumPy array",
    "ignore:Observation space for each agent probably should be gymnasium.spaces.box",
)
def test_pettingzoo_make() -> None:
    for name in ("gin_env/gin_rummy_v0", "gin_env/gin_rummy"):
        env = pettingzoo.make("aec", name, rules="plus20", match=True)
        assert (env.unwrapped.rules, env.unwrapped.match) == (preset("plus20"), True)
    api_test(env, num_cycles=50)


def test_pettingzoo_parallel() -> None:
    """It is a game of turns: PettingZoo refuses the one conversion, the other passes over whoever is not to move."""
    with pytest.raises(AssertionError, match="is_parallelizable"):
        aec_to_parallel(aec.env())
    env = turn_based_aec_to_parallel(aec.env(rules=SHORT))
    observations, _ = env.reset(seed=1)
    paid, moves = dict.fromkeys(env.possible_agents, 0.0), 0
    rng = np.random.default_rng(1)
    while env.agents:
        # Whoever is to move is the one with legal actions; what the other plays is ignored.
        masks = {agent: seen["action_mask"] for agent, seen in observations.items()}
        assert sum(mask.any() for mask in masks.values()) == 1
        actions = {agent: rng.choice(np.flatnonzero(mask)) if mask.any() else -5 for agent, mask in masks.items()}
        observations, rewards, terminated, truncated, infos = env.step(actions)
        paid = {agent: paid[agent] + rewards[agent] for agent in paid}
        moves += 1
    assert moves > 2
    assert all(terminated.values())
    assert paid["seat_0"] == -paid["seat_1"] != 0
    assert infos["seat_0"]["points"] == abs(paid["seat_0"])
