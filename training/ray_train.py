"""The same training on a Ray cluster: `training.ppo.train` in every worker, joined by Ray Train.

    from training.config import PPOConfig
    from training.ray_train import fit
    fit(PPOConfig(total_steps=20_000_000), "/shared/runs/big", workers=4)

It needs ``pip install "gin-env[ray]"``. The run's folder must lie where all workers can write it.
"""

from pathlib import Path
from typing import Any

from training.config import PPOConfig


def _work(told: dict[str, Any]) -> None:
    """What each worker does. Ray has joined them into a process group before."""
    from training import ppo

    ppo.train(PPOConfig.from_dict(told["config"]), told["run"], overwrite=told["overwrite"])


def fit(config: PPOConfig, run: str | Path, *, workers: int = 2, gpus: bool = False, overwrite: bool = False) -> None:
    """Trains by PPO on a Ray cluster, from the run's checkpoint where there is one.

    Args:
        config: What to train. Tables and minibatch are those of all workers together.
        run: The run's folder, reachable from all workers.
        workers: Processes.
        gpus: Whether each has a GPU (with ``config.device`` "cuda").
        overwrite: Whether to start afresh in a folder that holds a run.

    Raises:
        ImportError: If Ray is not installed.
        ray.train.base_trainer.TrainingFailedError: If a worker failed; its error is the cause.
    """
    from ray.train import ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    trainer = TorchTrainer(
        _work,
        train_loop_config={"config": config.to_dict(), "run": str(Path(run).absolute()), "overwrite": overwrite},
        torch_config=TorchConfig(backend="nccl" if gpus else "gloo"),
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=gpus),
    )
    trainer.fit()
