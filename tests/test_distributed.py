"""Training on several processes."""

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

import torch

from training.checkpoint import load_checkpoint
from training.config import PPOConfig
from training.distributed import World
from training.folder import CHECKPOINT
from training.metrics import METRICS
from training.ppo import Trainer

ROOT = Path(__file__).resolve().parent.parent
CONFIG = PPOConfig(
    total_steps=4096,
    tables=32,
    horizon=16,
    opponents={"greedy": 0.25},
    matches=0.25,
    width=16,
    layers=1,
    epochs=2,
    minibatch=256,
    kl_stop=0.05,
    threads=1,
    eval_every=10**9,
    eval_deals=4,
    checkpoint_every=10**9,
)


def start(number: int, command: list[str]) -> list["subprocess.Popen[str]"]:
    """Starts some processes as torchrun would."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {"WORLD_SIZE": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    env = os.environ | world | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return [
        subprocess.Popen(
            command,
            env=env | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(number)
    ]


def train_in(number: int, run: Path) -> list["subprocess.Popen[str]"]:
    script = (
        "import json, sys\n"
        "from training.config import PPOConfig\nfrom training.ppo import train\n"
        "train(PPOConfig.from_dict(json.loads(sys.argv[1])), sys.argv[2])\n"
    )
    return start(number, [sys.executable, "-c", script, json.dumps(CONFIG.to_dict()), str(run)])


def finish(processes: list["subprocess.Popen[str]"]) -> list[str]:
    """Waits for processes, which must end well, and returns what they printed."""
    told = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(told)
    return told


def test_alone_it_does_nothing() -> None:
    world = World(torch.device("cpu"))
    assert (world.rank, world.size, world.leads) == (0, 1, True)
    assert world.share(7, "tables") == 7
    assert world.any(True)
    assert not world.any(False)
    assert world.mean(torch.tensor(2.5)).item() == 2.5
    rows = np.arange(6).reshape(3, 2)
    assert world.gather(rows) is rows
    world.leave()


def test_shares() -> None:
    world = World(torch.device("cpu"))
    world.size = 3
    assert world.share(12, "tables") == 4
    with pytest.raises(ValueError, match="config: minibatch is 100; expected a multiple of the 3 processes"):
        world.share(100, "minibatch")


def test_two_processes_train_one_network(tmp_path: Path) -> None:
    told = finish(train_in(2, tmp_path / "two"))
    # The first tells, the other is silent.
    assert "4,096 decisions" in told[0]
    assert told[1].strip() == ""
    tensors, header = load_checkpoint(tmp_path / "two" / CHECKPOINT)
    assert header["step"] == 4096
    assert [json.loads(line)["step"] for line in (tmp_path / "two" / METRICS).read_text().splitlines()] == [
        512 * number for number in range(1, 9)
    ]
    # All tables are kept, and each process has dealt its own.
    trainer = Trainer(CONFIG)
    trainer.restore(tmp_path / "two")
    keys = trainer.collector.tables["key"]
    assert keys.size == len(set(keys.tolist())) == 32
    before = dict(Trainer(CONFIG).network.named_parameters())
    assert all(not torch.equal(weight, tensors[f"network.{name}"]) for name, weight in before.items())

    # The same again, interrupted: to the bit. It is enough if one of them is told to stop.
    processes = train_in(2, tmp_path / "again")
    while not (tmp_path / "again" / METRICS).exists() and processes[0].poll() is None:
        time.sleep(0.05)
    processes[1].terminate()
    stopped = [process.communicate(timeout=300)[0] for process in processes]
    assert all("Interrupted: stopped at step" in text for text in stopped), stopped
    assert load_checkpoint(tmp_path / "again" / CHECKPOINT)[1]["step"] < 4096
    finish(train_in(2, tmp_path / "again"))
    assert (tmp_path / "again" / CHECKPOINT).read_bytes() == (tmp_path / "two" / CHECKPOINT).read_bytes()


def test_averaged_gradients_are_those_of_all_rows() -> None:
    """Two processes, each with half of the rows, against one with all of them."""
    script = """
import sys, torch
from training.distributed import World
world = World(torch.device("cpu"))
torch.manual_seed(0)
layer, rows = torch.nn.Linear(5, 3), torch.randn(8, 5)
part = rows[world.rank * 4 : world.rank * 4 + 4]
layer(part).square().mean().backward()
world.average_gradients(layer.parameters())
own = [p.grad.clone() for p in layer.parameters()]
layer.zero_grad()
layer(rows).square().mean().backward()
assert all(torch.allclose(a, b.grad, atol=1e-6) for a, b in zip(own, layer.parameters()))
assert world.any(world.rank == 1) and not world.any(False)
assert world.gather(__import__("numpy").array([[world.rank, 7]])).tolist() == [[0, 7], [1, 7]]
assert world.mean(torch.tensor(float(world.rank))).item() == 0.5
world.leave()
"""
    finish(start(2, [sys.executable, "-c", script]))


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_the_same_on_a_ray_cluster(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.train.torch")

    from training.ray_train import fit

    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}})
    try:
        fit(dataclasses.replace(CONFIG, total_steps=1024), tmp_path / "ray", workers=2)
    finally:
        ray.shutdown()
    assert load_checkpoint(tmp_path / "ray" / CHECKPOINT)[1]["step"] == 1024
