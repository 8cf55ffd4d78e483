"""TorchRL: PPO by self-play on the PettingZoo environment, with one network for both seats.

python -m experiments.examples.torchrl_pettingzoo --steps 20000
"""

import torch
import tyro
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import PettingZooWrapper, RewardScaling, TransformedEnv
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from gin_env import aec, view


def network(outputs: int) -> nn.Module:
    """Returns a network that makes some numbers of an observation."""
    return nn.Sequential(nn.Linear(view.OBSERVATION_SIZE, 128), nn.Tanh(), nn.Linear(128, outputs))


def actor(net: nn.Module, *at: str) -> ProbabilisticActor:
    """Returns a policy over the legal actions, which reads and writes below ``at`` in a tensordict."""
    logits = TensorDictModule(net, [(*at, "observation", "observation")], [(*at, "logits")])
    reads = {"logits": (*at, "logits"), "mask": (*at, "action_mask")}
    writes = {"out_keys": [(*at, "action")], "log_prob_keys": [(*at, "action_log_prob")], "return_log_prob": True}
    return ProbabilisticActor(logits, reads, distribution_class=MaskedCategorical, **writes)


def train(steps: int = 4000, batch: int = 1000, seed: int = 0) -> tuple[nn.Module, list[dict[str, float]]]:
    """Plays some moves and returns the network that chose them and the losses of each batch."""
    torch.manual_seed(seed)
    # Both seats in one group: tensors are (moves, 2, ...).
    env = PettingZooWrapper(aec.env(), use_mask=True, group_map={"seats": list(aec.AGENTS)}, seed=seed)
    env = TransformedEnv(env, RewardScaling(0, 0.01, in_keys=[("seats", "reward")]))
    net, values = network(env.action_spec["seats", "action"].n), network(1)
    gae = GAE(gamma=0.99, lmbda=0.95, value_network=ValueOperator(values, [("seats", "observation", "observation")]))
    gae.set_keys(**{key: ("seats", key) for key in ("advantage", "value_target", "reward", "done", "terminated")})
    loss = ClipPPOLoss(actor(net), ValueOperator(values, [("observation", "observation")]), normalize_advantage=True)
    optimizer, history = torch.optim.Adam(loss.parameters(), lr=3e-4), []
    for data in Collector(env, actor(net, "seats"), frames_per_batch=batch, total_frames=steps):
        for _ in range(4):
            # A seat that is not to move sees and values the move as well, but chooses nothing.
            chosen = gae(data)["seats"][data["seats", "mask"]]
            losses = loss(chosen)
            optimizer.zero_grad()
            sum(value for name, value in losses.items() if name.startswith("loss_")).backward()
            optimizer.step()
        hands = data["next", "done"].sum().item()
        history.append({"hands": hands, **{name: value.mean().item() for name, value in losses.items()}})
        print({name: round(value, 4) for name, value in history[-1].items()})
    return net, history


if __name__ == "__main__":
    torch.set_num_threads(1)  # a small network is not worth more
    tyro.cli(train)
