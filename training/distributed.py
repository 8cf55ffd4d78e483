"""One run on several processes: each plays its share of the tables, and their gradients are averaged.

``torchrun --nproc-per-node 2 -m experiments.cli train ppo ...`` starts them on one machine; Ray Train does on a cluster
(`training.ray_train`). They stay alike because they start alike and take the same averaged steps.
"""

import os
from collections.abc import Iterable

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn


class World:
    """The processes that train together. Alone it does nothing.

    Args:
        device: Where the networks are; decides how the processes talk (NCCL between GPUs, gloo between processors).

    Attributes:
        rank: The number of this process, from 0.
        size: How many there are.
    """

    def __init__(self, device: torch.device) -> None:
        self.rank, self.size = 0, 1
        self.device = device
        self._joined = False
        if not dist.is_available():
            return
        if not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
            self._joined = True
        if dist.is_initialized():  # by Ray, or just now
            self.rank, self.size = dist.get_rank(), dist.get_world_size()

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes, evaluates and tells."""
        return self.rank == 0

    def share(self, number: int, what: str) -> int:
        """Returns this process's share of a number.

        Raises:
            ValueError: If it cannot be divided among the processes.
        """
        if number % self.size:
            raise ValueError(f"config: {what} is {number}; expected a multiple of the {self.size} processes")
        return number // self.size

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replaces all gradients by their mean over the processes, in one message."""
        if self.size == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self.size
        for gradient, part in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def mean(self, value: Tensor) -> Tensor:
        """Returns the mean of a scalar over the processes."""
        if self.size == 1:
            return value
        value = value.detach().clone()
        dist.all_reduce(value)
        return value / self.size

    def any(self, flag: bool) -> bool:
        """Returns whether any process says so."""
        if self.size == 1:
            return flag
        votes = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(votes)
        return bool(votes.item() > 0)

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Returns the rows of all processes, in their order; each has as many.

        Args:
            rows: (N, ...) of any type without objects.
        """
        if self.size == 1:
            return rows
        mine = torch.from_numpy(np.ascontiguousarray(rows).view(np.uint8).reshape(-1).copy()).to(self.device)
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(parts, mine)
        return np.concatenate([part.cpu().numpy().view(rows.dtype).reshape(rows.shape) for part in parts])

    def leave(self) -> None:
        """Ends what `World` began."""
        if self._joined:
            dist.destroy_process_group()
            self._joined = False
