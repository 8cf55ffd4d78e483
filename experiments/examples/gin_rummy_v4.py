"""Code for PettingZoo's old `gin_rummy_v4`, with one import changed: who keeps melds against who plays at random.

python -m experiments.examples.gin_rummy_v4
"""

import numpy as np

# It was: from pettingzoo.classic import gin_rummy_v4
from gin_env.adapters import gin_rummy_v4
from gin_env.cards import to_mask
from gin_env.melds import deadwood_after

DRAW, GIN, DISCARD, KNOCK = 2, 5, 6, 58


def keep_melds(observation: dict[str, np.ndarray]) -> int:
    """Draws, throws what leaves the least deadwood, and knocks or has gin as soon as it may."""
    mask = observation["action_mask"]
    if mask[GIN] or mask[DRAW]:
        return GIN if mask[GIN] else DRAW
    first = KNOCK if mask[KNOCK:].any() else DISCARD
    if not mask[first:].any():
        return int(np.flatnonzero(mask)[-1])  # the hand is dead, or is counted
    hand = to_mask(np.flatnonzero(observation["observation"][0]))
    left = deadwood_after(np.array([hand], dtype=np.uint64))[0]
    throws = np.flatnonzero(mask[first : first + 52])
    return int(first + throws[left[throws].argmin()])


def main(hands: int = 40) -> None:
    """Plays hands and prints the mean reward of each agent: player_0 keeps melds, player_1 plays at random."""
    env = gin_rummy_v4.env(knock_reward=0.5, gin_reward=1.0)
    rng = np.random.default_rng(1)
    rewards = dict.fromkeys(env.possible_agents, 0.0)
    for hand in range(hands):
        env.reset(seed=hand)
        for agent in env.agent_iter():
            observation, reward, terminated, truncated, _ = env.last()
            rewards[agent] += reward
            if terminated or truncated:
                env.step(None)
            elif agent == "player_0":
                env.step(keep_melds(observation))
            else:
                env.step(int(rng.choice(np.flatnonzero(observation["action_mask"]))))
    means = ", ".join(f"{agent} {total / hands:+.3f}" for agent, total in rewards.items())
    print(f"{hands} hands, mean rewards: {means}")


if __name__ == "__main__":
    main()
