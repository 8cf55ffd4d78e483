"""Checkpoints: one safetensors file, written beside and renamed, read without pickle.

Tensors and plain numbers only: the network, the optimizer, the tables, the random state, and a JSON header with the
rest. A run resumed from one goes on bit for bit as if it had never stopped.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from agents.bundle import WEIGHTS
from agents.networks import SuitTrunk
from training.folder import (
    BEST,
    CHECKPOINT,
    CONFIG,
    CheckpointError,
    load_config,
    write_atomically,
    write_json,
)

FORMAT = 1


def optimizer_tensors(optimizer: torch.optim.Optimizer, name: str = "optimizer") -> dict[str, Tensor]:
    """The optimizer's state as named tensors: ``<name>.<parameter number>.<entry>``."""
    state = optimizer.state_dict()["state"]
    return {
        f"{name}.{number}.{entry}": torch.as_tensor(value)
        for number, entries in state.items()
        for entry, value in entries.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], name: str = "optimizer") -> None:
    """Puts back what `optimizer_tensors` gave."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith(f"{name}."):
            _, number, entry = key.split(".", 2)
            state.setdefault(int(number), {})[entry] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def network_tensors(network: nn.Module, name: str = "network") -> dict[str, Tensor]:
    """The network's weights, named ``<name>.<parameter>``."""
    return {f"{name}.{key}": tensor for key, tensor in network.state_dict().items()}


def load_network(
    network: nn.Module, tensors: Mapping[str, Tensor], name: str = "network", *, grow: bool = False
) -> None:
    """Puts the weights of a checkpoint into a network.

    Args:
        network: The network.
        tensors: The checkpoint's tensors.
        name: What they are called there.
        grow: Whether they may be those of a network that is smaller (`agents.networks.SuitTrunk.grown`).

    Raises:
        CheckpointError: If they do not fit it.
    """
    prefix = f"{name}."
    weights = {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}
    if grow and isinstance(network, SuitTrunk):
        weights = network.grown(weights)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(
            f"the checkpoint's weights do not fit the network: {str(error).splitlines()[-1].strip()}"
        ) from None


def load_weights(folder: Path) -> dict[str, Tensor]:
    """Reads the network of a run or of an exported bundle: its weights, named as `network_tensors` does.

    Raises:
        CheckpointError: If the folder is neither, or is damaged.
    """
    weights = folder / WEIGHTS
    if (folder / CHECKPOINT).exists() or not weights.is_file():
        return load_checkpoint(folder / CHECKPOINT)[0]
    try:
        return {f"network.{name}": tensor for name, tensor in load_file(weights).items()}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"bundle {folder} is damaged: {error}") from None


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Writes a checkpoint atomically.

    Args:
        path: The file.
        tensors: What to keep, by name.
        header: Plain values, kept as JSON.

    Raises:
        OSError: If it cannot be written; an older one is as it was.
    """
    beside = path.with_name(f".{path.name}.part")
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    try:
        save_file(plain, beside, metadata={"header": json.dumps({"format": FORMAT, **header})})
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except (OSError, SafetensorError) as error:
        beside.unlink(missing_ok=True)  # on a full disk it is in the way
        number = re.search(r"os error (\d+)", str(error))
        if isinstance(error, OSError) or number is None:
            raise
        raise OSError(int(number.group(1)), os.strerror(int(number.group(1))), str(path)) from None


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a checkpoint: its tensors and header.

    Raises:
        CheckpointError: If it is missing, damaged, or of another format.
    """
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["header"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, KeyError, json.JSONDecodeError, OSError) as error:
        raise CheckpointError(f"checkpoint {path} is damaged: {error}") from None
    if header.get("format") != FORMAT:
        raise CheckpointError(f"checkpoint {path} has format {header.get('format')}; expected {FORMAT}")
    return tensors, header


__all__ = [
    "BEST",
    "CHECKPOINT",
    "CONFIG",
    "FORMAT",
    "CheckpointError",
    "load_checkpoint",
    "load_config",
    "load_network",
    "load_optimizer",
    "load_weights",
    "network_tensors",
    "optimizer_tensors",
    "save_checkpoint",
    "write_atomically",
    "write_json",
]
