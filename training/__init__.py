"""Training: PPO self-play from a recipe to an exported bundle."""
