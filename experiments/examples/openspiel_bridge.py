"""Our greedy player and OpenSpiel's simple bot at both tables: in OpenSpiel's game, and in a match of ours.

python -m experiments.examples.openspiel_bridge
"""

import random

import pyspiel

import agents
from agents.match import play_match
from gin_env.adapters.openspiel import AgentBot, OpenSpielAgent, simple_bot


def play_there(hands: int, seed: int = 0) -> float:
    """Plays in OpenSpiel, each player in turn as player 0, and returns our player's points a hand."""
    game = pyspiel.load_game("gin_rummy")
    ours = AgentBot(agents.make("greedy"))
    rng = random.Random(seed)
    points = 0.0
    for hand in range(hands):
        seat = hand % 2
        bots = [ours, simple_bot(game, 1)] if seat == 0 else [simple_bot(game, 0), ours]
        state = game.new_initial_state()
        ours.restart()
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(rng.choice(state.legal_actions()))
            else:
                state.apply_action(bots[state.current_player()].step(state))
        points += state.returns()[seat]
    return points / hands


def play_here(deals: int, seed: int = 0) -> tuple[float, tuple[float, float]]:
    """Plays every deal twice with the seats exchanged, and returns our points a hand and their 95 % interval."""
    result = play_match(agents.make("greedy"), OpenSpielAgent(), deals=deals, seed=seed, rules="openspiel")
    return result.points_per_hand, result.ci95


def main(deals: int = 60) -> None:
    """Plays both, and prints what the greedy player won."""
    print(f"in OpenSpiel, {2 * deals} hands: greedy {play_there(2 * deals):+.2f} a hand against the simple bot")
    points, (low, high) = play_here(deals)
    print(f"at our tables, {2 * deals} hands: greedy {points:+.2f} a hand, 95 % interval {low:+.2f} to {high:+.2f}")


if __name__ == "__main__":
    main()
