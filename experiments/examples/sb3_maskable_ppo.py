"""Trains sb3-contrib's MaskablePPO against the random player, and says how many hands it then wins.

    pip install "gin-env[sb3]"
    python -m experiments.examples.sb3_maskable_ppo

One network, two hidden layers of 256, that starts from noise and sees nothing but observations, masks and points.
"""

import time

import numpy as np
import torch
from sb3_contrib import MaskablePPO

import agents
from agents.match import MatchResult, play_match
from gin_env.adapters.sb3 import GinRummyVecEnv
from gin_env.view import View, encode


class MaskablePPOAgent:
    """Plays a model's likeliest action in matches."""

    def __init__(self, model: MaskablePPO) -> None:
        self.name, self.model = "MaskablePPO", model

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        return self.model.predict(encode(view), action_masks=mask, deterministic=True)[0]


def main(decisions: int = 400_000, deals: int = 2000) -> MatchResult:
    """Trains for so many decisions, and plays every one of so many deals twice."""
    torch.set_num_threads(1)  # on layers this small a second thread gains little, and nothing on a busy machine
    start = time.perf_counter()
    env = GinRummyVecEnv(128, opponent="agents:random", reward_scale=0.05)  # 20 points are one unit
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=32,
        batch_size=512,
        n_epochs=4,
        learning_rate=1e-3,
        gamma=0.98,  # a sure knock now is better than gin some day
        ent_coef=0.005,
        policy_kwargs={"net_arch": [256, 256], "activation_fn": torch.nn.ReLU},
        seed=1,
        device="cpu",
    )
    model.learn(decisions)
    minutes = (time.perf_counter() - start) / 60
    result = play_match(MaskablePPOAgent(model), agents.make("random"), deals=deals, seed=1_000_003)
    won = result.hands_won / (2 * deals)
    print(f"{model.num_timesteps:,} decisions in {minutes:.1f} minutes: {won:.1%} of the hands won")
    return result


if __name__ == "__main__":
    main()
