"""How kernels are compiled: what their cache depends on, and the two machine instructions."""

import shutil
from pathlib import Path
from random import Random
from typing import Any

import numba
import numpy as np
import pytest

from agents import baselines
from gin_env import _compile, engine, melds, view
from gin_env._compile import count, kernel, lowest
