"""RLlib: PPO in one seat against the random player, or with both seats on one policy.

python -m experiments.examples.rllib_ppo --steps 4000
python -m experiments.examples.rllib_ppo --steps 4000 --both-seats
"""

from typing import Any

import ray
import torch
import tyro
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from gin_env.adapters.rllib import BothSeatsEnv, SeatEnv


def configure(both_seats: bool = False, batch: int = 1000, seed: int = 0) -> PPOConfig:
    """Returns what to train, all of it in this process."""
    model = DefaultModelConfig(fcnet_hiddens=[128, 128])
    config = PPOConfig()
    if both_seats:
        # The check that is left out plays actions of the whole space, and an illegal one is refused.
        config.environment(BothSeatsEnv, disable_env_checking=True)
        config.multi_agent(policies={"shared"}, policy_mapping_fn=lambda *_, **__: "shared")
    else:
        config.environment(SeatEnv, env_config={"opponent": "agents:random"})
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule, model_config=model))
    config.env_runners(num_env_runners=0)
    config.learners(num_learners=0)
    # Errors of the value are squares of hand points, and the default cuts them at 10.
    config.training(train_batch_size_per_learner=batch, minibatch_size=batch // 4, num_epochs=4, vf_clip_param=10_000.0)
    return config.debugging(seed=seed)


def train(algorithm: PPO, steps: int) -> list[dict[str, Any]]:
    """Trains for some steps and returns what RLlib reports of each batch."""
    history: list[dict[str, Any]] = []
    while sum(result["env_runners"]["num_env_steps_sampled"] for result in history) < steps:
        history.append(algorithm.train())
        (losses,) = (told for name, told in history[-1]["learners"].items() if name != "__all_modules__")
        played = history[-1]["env_runners"]
        told = {name: float(losses[name]) for name in ("policy_loss", "vf_loss", "entropy")}
        print({"hands": played.get("num_episodes", 0), "points": played.get("episode_return_mean"), **told})
    return history


def main(steps: int = 2000, both_seats: bool = False) -> None:
    """Trains for some decisions, against the random player or with both seats on one policy."""
    torch.set_num_threads(1)  # a small network is not worth more
    ray.init(num_cpus=1, include_dashboard=False)
    train(configure(both_seats).build_algo(), steps)
    ray.shutdown()


if __name__ == "__main__":
    tyro.cli(main)
