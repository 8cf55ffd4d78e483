"""Training: PPO self-play from a recipe to an exported bundle."""

import os

# Before torch is imported: let its threads sleep while they wait for each other. Spinning (the default) makes two
# threads on two busy cores many times slower than one (measured: 2,900 against 18,000 decisions a second).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
