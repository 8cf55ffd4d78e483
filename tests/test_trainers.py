"""The examples with other people's training libraries, run for real at a small size.

An illegal action raises in each of them, so what has played to the end has played legal actions only.
"""

import importlib.util
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.interop


def need(*modules: str) -> pytest.MarkDecorator:
    """Skips a test where one of the modules is not installed."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


def same(one: Any, other: Any) -> bool:
    """Returns whether two networks have the same parameters."""
    return all((a == b).all() for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small networks on many threads are slow, the more so where other tests run beside these."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# ------------------------------------------------------------------------------------------------------------- TorchRL

torchrl_warnings = pytest.mark.filterwarnings(
    # TorchRL's wrapper: it is tested with an older PettingZoo.
    "ignore:PettingZoo in TorchRL is tested using version",
    # TorchRL's collector, about what it will add to environments by itself from 0.15 on.
    "ignore:The env passed to Collector is missing transforms:FutureWarning",
    # torch.jit and tensordict, as TorchRL imports them.
    "ignore::DeprecationWarning",
)


@need("torchrl")
@torchrl_warnings
@pytest.mark.parametrize("groups", [None, {"seats": ["seat_0", "seat_1"]}], ids=["a group each", "one group"])
@pytest.mark.parametrize("options", [{}, {"match": True}, {"rules": "openspiel"}], ids=str)
def test_torchrl_wrapper(options: dict[str, Any], groups: dict[str, list[str]] | None) -> None:
    import torch
    from torchrl.envs import PettingZooWrapper
    from torchrl.envs.utils import check_env_specs

    from gin_env import aec

    torch.manual_seed(1)
    env = PettingZooWrapper(aec.env(**options), use_mask=True, group_map=groups, seed=1)
    check_env_specs(env)
    played = env.rollout(60, break_when_any_done=False)
    # One seat is to move in each step; TorchRL lets the other choose anything, and plays it not.
    to_move = torch.cat([played[group, "mask"] for group in env.group_map], dim=-1)
    assert (to_move.sum(dim=-1) == 1).all()
    for group in env.group_map:
        masks, actions, moving = played[group, "action_mask"], played[group, "action"], played[group, "mask"]
        assert masks.gather(-1, actions.unsqueeze(-1))[moving].all()
        assert masks[~moving].all()


@need("torchrl")
@torchrl_warnings
def test_torchrl_example() -> None:
    import torch

    from experiments.examples.torchrl_pettingzoo import network, train

    torch.manual_seed(0)
    untrained = network(108)
    trained, history = train(steps=400, batch=200, seed=0)
    assert not same(untrained, trained)
    assert len(history) == 2
    assert sum(told["hands"] for told in history) > 0
    assert all(math.isfinite(value) for told in history for value in told.values())
    assert history[0]["entropy"] > 0.5


# ------------------------------------------------------------------------------------------------------------ Tianshou


@need("tianshou")
@pytest.mark.filterwarnings(
    # Tianshou's imports and its batches, with newer pandas, torch and numpy.
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
)
def test_tianshou_example() -> None:
    import torch
    from tianshou.utils.net.common import Net

    from experiments.examples.tianshou_dqn import train

    torch.manual_seed(0)
    untrained = Net(state_shape=(487,), action_shape=108, hidden_sizes=[128, 128])
    trained, history = train(steps=400, hands=8, seed=0)
    assert not same(untrained, trained)
    assert len(history) == 3  # before, and after each epoch
    assert all(math.isfinite(points) for points in history)
    assert all(torch.isfinite(parameter).all() for parameter in trained.parameters())


@need("tianshou")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # as above
def test_tianshou_multi_agent() -> None:
    """Tianshou's own wrapper works, given infos of one shape; why the example does not use it is said there."""
    from pettingzoo.utils.wrappers import BaseWrapper
    from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
    from tianshou.algorithm.random import MARLRandomDiscreteMaskedOffPolicyAlgorithm
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv, PettingZooEnv

    from gin_env import aec

    class WithoutInfos(BaseWrapper):
        def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return (*super().last()[:4], {})

    env = PettingZooEnv(aec.env())
    players = [MARLRandomDiscreteMaskedOffPolicyAlgorithm(action_space=env.action_space) for _ in env.agents]
    algorithm = MultiAgentOffPolicyAlgorithm(algorithms=players, env=env)
    envs = DummyVectorEnv([lambda: PettingZooEnv(WithoutInfos(aec.env()))] * 2)
    stored = VectorReplayBuffer(2000, 2)
    collector = Collector(algorithm, envs, stored)
    collector.reset()
    played = collector.collect(n_episode=4)
    assert played.n_collected_episodes == 4
    assert not stored.rew.sum(axis=1).any()  # zero-sum
    # What follows a move is seen by whoever is to move then, which is the other seat after a discard.
    batch = stored.sample(0)[0]
    assert (batch.obs.agent_id != batch.obs_next.agent_id).any()
    assert all(mask[action] for mask, action in zip(batch.obs.mask, batch.act, strict=True))


# --------------------------------------------------------------------------------------------------------------- RLlib


@pytest.fixture(scope="module")
def ray_started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise ray writes a token into the home folder of whoever runs the tests.
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


ray_warnings = pytest.mark.filterwarnings(
    # Ray's and RLlib's own: old names that it uses itself, and files and processes that it leaves open.
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    # RLlib makes Gymnasium vectors of environments that are registered again for each algorithm.
    "ignore:.*Overriding environment",
)


@need("ray", "torch")
@ray_warnings
@pytest.mark.parametrize("both_seats", [False, True], ids=["one seat", "both seats"])
def test_rllib_example(ray_started: None, both_seats: bool) -> None:
    from experiments.examples.rllib_ppo import configure, train

    algorithm = configure(both_seats, batch=200).build_algo()
    name = "shared" if both_seats else "default_policy"
    before = {key: np.array(value) for key, value in algorithm.get_module(name).get_state().items()}
    history = train(algorithm, 200)
    after = algorithm.get_module(name).get_state()
    algorithm.stop()
    assert any(not np.array_equal(value, after[key]) for key, value in before.items())
    (losses,) = (told for key, told in history[-1]["learners"].items() if key == name)
    assert all(math.isfinite(losses[key]) for key in ("policy_loss", "vf_loss", "entropy"))
    assert sum(told["env_runners"]["num_episodes"] for told in history) > 0


@need("ray")
@ray_warnings
@pytest.mark.parametrize("options", [{}, {"match": True, "rules": "cardpuzzle:target=30"}], ids=str)
def test_rllib_both_seats(options: dict[str, Any]) -> None:
    from gin_env.adapters.rllib import BothSeatsEnv

    env = BothSeatsEnv(options)
    rng = np.random.default_rng(1)
    for episode in range(3):
        seen, _ = env.reset(seed=episode)
        paid = dict.fromkeys(env.possible_agents, 0.0)
        over = False
        while not over:
            ((agent, observation),) = seen.items()
            assert observation in env.observation_spaces[agent]
            mask = observation["action_mask"]
            seen, rewards, terminated, truncated, _ = env.step({agent: rng.choice(np.flatnonzero(mask))})
            paid = {name: paid[name] + rewards.get(name, 0.0) for name in paid}
            over = terminated["__all__"] or truncated["__all__"]
        assert set(seen) == {"seat_0", "seat_1"}
        assert paid["seat_0"] == -paid["seat_1"]


@need("ray")
@ray_warnings
def test_rllib_seat() -> None:
    from gin_env.adapters.rllib import SeatEnv

    env = SeatEnv({"opponent": "agents:random", "rules": "plus20"})
    assert env.unwrapped.rules.name == "plus20"
    assert list(env.reset(seed=1)[0]) == ["observations", "action_mask"]
