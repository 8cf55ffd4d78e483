"""Tianshou: DQN in one seat against the random player: python -m experiments.examples.tianshou_dqn --steps 20000.

Not by Tianshou's PettingZooEnv, where a move is followed by the other player's view and a hand pays who moved last.
"""

import numpy as np
import torch
import tyro
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from gin_env.actions import NUM_ACTIONS
from gin_env.adapters.masked import MaskedObservation
from gin_env.seat import GinRummyEnv
from gin_env.view import OBSERVATION_SIZE


def make_env() -> MaskedObservation:
    """Returns the environment as Tianshou asks for it."""
    return MaskedObservation(GinRummyEnv(opponent="agents:random"), observation="obs", mask="mask", infos=False)


def train(steps: int = 4000, hands: int = 50, seed: int = 0) -> tuple[Net, list[float]]:
    """Plays some decisions; returns the network, and the points a hand before the first and after each epoch."""
    np.random.seed(seed)  # noqa: NPY002  Tianshou draws from it
    torch.manual_seed(seed)
    net = Net(state_shape=(OBSERVATION_SIZE,), action_shape=NUM_ACTIONS, hidden_sizes=[128, 128])
    policy = DiscreteQLearningPolicy(model=net, action_space=make_env().action_space, eps_training=0.2)
    dqn = DQN(policy=policy, optim=AdamOptimizerFactory(lr=5e-4), target_update_freq=100, huber_loss_delta=10.0)
    envs, test_envs, history = DummyVectorEnv([make_env] * 8), DummyVectorEnv([make_env] * 8), []
    envs.seed(seed)
    test_envs.seed(seed + 8)

    def score(played: CollectStats) -> float:
        history.append(played.returns.mean())
        print(f"{history[-1]:+.1f} points a hand, {(played.returns > 0).mean():.0%} of {hands} hands won")
        return history[-1]

    sizes = {"max_epochs": 2, "epoch_num_steps": steps // 2, "test_step_num_episodes": hands, "show_progress": False}
    params = OffPolicyTrainerParams(
        training_collector=Collector(dqn, envs, VectorReplayBuffer(20_000, 8), exploration_noise=True),
        test_collector=Collector(dqn, test_envs, VectorReplayBuffer(1000, 8)),
        collection_step_num_env_steps=min(400, steps // 2),  # all that is stored is looked through after each
        update_step_num_gradient_steps_per_sample=0.25,
        compute_score_fn=score,
        **sizes,
    )
    dqn.run_training(params)
    return net, history


if __name__ == "__main__":
    torch.set_num_threads(1)  # a small network is not worth more
    tyro.cli(train)
