"""Our players at OpenSpiel's gin rummy, and its bots at our tables."""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import agents
from agents.match import play_match
from gin_env import as_rules, engine, preset
from gin_env.actions import BIG_GIN, KNOCK, LAYOFF, MELD, NUM_MANUAL_ACTIONS, PASS, action_name, parse_action
from gin_env.cards import NUM_CARDS, parse_card, parse_cards, to_mask
from gin_env.record import Record
from gin_env.tables import DECLARE, DEFEND, DRAW_ANY, LAY_OFF, PHASES, THROW, WALL, WALL_THROW
from gin_env.view import observe
from tests.test_gin_rummy_v4 import rich_deck

pyspiel: Any = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install 'gin-env[peers]'")
openspiel: Any = pytest.importorskip("gin_env.adapters.openspiel")
pytestmark = pytest.mark.interop

CARD, THEIRS, SAY_KNOCK, STOP, TAKE_UPCARD = (
    getattr(openspiel, name) for name in ("CARD", "THEIRS", "SAY_KNOCK", "STOP", "TAKE_UPCARD")
)


@pytest.fixture(scope="module")
def game() -> Any:
    """Their game."""
    return pyspiel.load_game("gin_rummy")


def dealt(game: Any, deck: list[int]) -> Iterator[int]:
    """Yields the cards of a deck of ours in the order in which they deal, in their numbers."""
    size = game.get_parameters()["hand_size"]
    for card in (*deck[0 : 2 * size : 2], *deck[1 : 2 * size : 2], *deck[2 * size :]):
        yield int(CARD[card])


def play_there(game: Any, deck: list[int], bots: list[Any], watch: Callable[[Any], None] = lambda state: None) -> Any:
    """Plays a deal of ours with two bots in their game and returns the last state."""
    state, cards = game.new_initial_state(), dealt(game, deck)
    for bot in bots:
        bot.restart()
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(next(cards))
        else:
            watch(state)
            state.apply_action(bots[state.current_player()].step(state))
    return state


def moves_of(game: Any, state: Any) -> list[int]:
    """Returns a hand that they have played in our actions."""
    shadow = openspiel.Shadow(game)
    shadow.follow(state)
    table = shadow.tables[0]
    return table["moves"][: table["num_moves"]].tolist()


class Doubts:
    """Notes whether their rules and ours differed in a hand.

    Args:
        game: Their game.
    """

    def __init__(self, game: Any) -> None:
        self.shadow = openspiel.Shadow(game)
        self.found = False

    def __call__(self, state: Any) -> None:
        self.shadow.follow(state)
        ours, both = self.shadow.legal(state)
        if not self.shadow.knock_said:
            self.found |= bool((ours != both).any())


# ------------------------------------------------------------------------------------------------------ the mapping


def test_names_of_actions(game: Any) -> None:
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    for action in range(NUM_MANUAL_ACTIONS):
        if action == BIG_GIN:
            assert THEIRS[action] == -1
            continue
        name = state.action_to_string(0, int(THEIRS[action])).removeprefix("Player: 0 Action: ")
        if action < 3:
            assert name == ["Pass", "Draw stock", "Draw upcard"][action]
        elif KNOCK <= action < BIG_GIN:
            assert name == "Knock"
        else:
            cards = to_mask(parse_cards([name[at : at + 2] for at in range(0, len(name), 2)]))
            ours = action_name(action).split()[1:]
            assert cards == to_mask(parse_cards(ours if MELD <= action < LAYOFF else ours[:1]))
    assert sorted(set(THEIRS[MELD:LAYOFF].tolist())) == list(range(openspiel.LAY, openspiel.NUM_THEIRS))


def test_rules_and_games() -> None:
    for text in ("", "oklahoma=true", "knock_limit=4,hand_size=7", "gin_bonus=20,undercut_bonus=10"):
        rules = as_rules(f"openspiel:{text}")
        assert openspiel.rules_of(openspiel.game_of(rules)) == rules
    openspiel.game_of(preset("openspiel", first_dealer=0, next_dealer="alternate", target=None))
    for changes in ({"layoffs": "best", "defender_melds": "auto"}, {"stock_floor": 3}):
        with pytest.raises(ValueError, match="OpenSpiel plays those of the preset"):
            openspiel.game_of(preset("openspiel", **changes))
    with pytest.raises(ValueError, match="gin_rummy with 13 ranks"):
        openspiel.rules_of(pyspiel.load_game("gin_rummy(num_ranks=10,hand_size=7)"))
    with pytest.raises(ValueError, match="gin_rummy with 13 ranks"):
        openspiel.Shadow(pyspiel.load_game("tic_tac_toe"))


# ------------------------------------------------------------------------------------------ our players at their game


@pytest.mark.parametrize("other", ["gin-only", "early-knock"])
def test_our_players_play_there_as_here(game: Any, other: str) -> None:
    """The same deals, move by move, except where OpenSpiel refuses what our rules allow."""
    records: list[Record] = []
    pair = [agents.make("greedy"), agents.make(other)]
    play_match(*pair, deals=40, rules="openspiel", seed=3, record=records.append)
    doubtful = 0
    for number, record in enumerate(records):
        (hand,) = record.hands
        bots = [openspiel.AgentBot(agent) for agent in (pair if number % 2 == 0 else pair[::-1])]
        doubts = Doubts(game)
        state = play_there(game, list(hand.deck), bots, doubts)
        if doubts.found:
            doubtful += 1
        else:
            assert moves_of(game, state) == list(hand.moves)
            assert state.returns() == points_of(hand.result)
    assert doubtful < 0.05 * len(records)


def points_of(result: Any) -> list[float]:
    """Returns what each seat won in a recorded hand."""
    if result.winner is None:
        return [0, 0]
    return [result.points if result.winner == seat else -result.points for seat in (0, 1)]


def test_random_players_and_their_seeds(game: Any) -> None:
    """In their own loops, in Python and in C++."""
    from open_spiel.python.algorithms.evaluate_bots import evaluate_bots

    def returns(seed: int) -> list[list[float]]:
        bots = [openspiel.AgentBot(agents.make("random"), seed=seed + player) for player in (0, 1)]
        rng = np.random.RandomState(5)
        return [evaluate_bots(game.new_initial_state(), bots, rng) for _ in range(8)]

    first = returns(1)
    assert returns(1) == first
    assert returns(2) != first
    bots = [openspiel.AgentBot(agents.make(name)) for name in ("greedy", "random")]
    assert pyspiel.evaluate_bots(game.new_initial_state(), bots, 3)[0] > 0


def test_a_bot_may_come_late_and_go_back(game: Any) -> None:
    """It reads what was played from the state, whichever it is asked about."""
    rng, bot = Random(4), openspiel.AgentBot(agents.make("greedy"))
    states = []
    state = game.new_initial_state()
    while not state.is_terminal():
        if not state.is_chance_node():
            states.append((state.clone(), bot.step(state)))
        state.apply_action(rng.choice(state.legal_actions()))
    rng.shuffle(states)
    for state, action in states:
        assert bot.step(state) == action
        assert bot.provides_policy() is False


def test_what_a_bot_cannot_be_asked(game: Any) -> None:
    state, shadow = game.new_initial_state(), openspiel.Shadow(game)
    with pytest.raises(ValueError, match="expected a player to move"):
        shadow.follow(state)
    for card in range(21):
        state.apply_action(card)
    bot = openspiel.AgentBot(Always(KNOCK))
    with pytest.raises(ValueError, match=r"chose action 55 in phase 'offer'; legal: pass, take"):
        bot.step(state)
    for action in (STOP, STOP, openspiel.DRAW_STOCK):
        state.apply_action(action)
    with pytest.raises(ValueError, match="expected a player to move"):
        bot.step(state)


class Always:
    """A player that always chooses the same action.

    Args:
        action: It.
    """

    name = "always"

    def __init__(self, action: int) -> None:
        self.action = action

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        return np.full(view.size, self.action)


def after(game: Any, hands: tuple[str, str], upcard: str, moves: str) -> Any:
    """Returns their state after a deal and some of our moves, separated by commas; knocks have their two actions."""
    state = game.new_initial_state()
    for card in (*parse_cards(hands[0]), *parse_cards(hands[1]), parse_card(upcard)):
        state.apply_action(int(CARD[card]))
    for name in moves.split(","):
        action = parse_action(name)
        state.apply_action(int(THEIRS[action]))
        if KNOCK <= action < BIG_GIN:
            state.apply_action(int(CARD[action - KNOCK]))
    return state


def test_a_third_layoff_becomes_a_pass(game: Any) -> None:
    hands = "5S 6S 7S KH KD KC QH QD QC AH", "8S 9S TS 2H 4H 6H 8H TH 3D 5D"
    moves = "take,knock JD,meld 5S 6S 7S,meld KH KD KC,meld QH QD QC,pass,layoff 8S 1,layoff 9S 1"
    state = after(game, hands, "JD", moves)
    assert openspiel.AgentBot(agents.make("greedy")).step(state) == STOP
    with pytest.raises(ValueError, match="legal: pass"):
        openspiel.AgentBot(Always(parse_action("layoff JS 1"))).step(state)


# ------------------------------------------------------------------------------------------ their bots at our tables


def check_imagined(state: Any, view: np.void) -> None:
    """Compares a state with one made up from what its player may know."""
    player = state.current_player()
    parameters = state.get_game().get_parameters() | {"oklahoma": False, "knock_card": int(view["limit"])}
    imagined, since = openspiel.imagine(pyspiel.load_game("gin_rummy", parameters).new_initial_state(), view)
    assert imagined.current_player() == player
    for action in since:
        imagined.apply_action(action)
    assert imagined.current_player() == player
    assert imagined.legal_actions() == state.legal_actions()
    assert imagined.observation_tensor(player) == state.observation_tensor(player)
    names = ["current_phase", "discard_pile", "layed_melds", "knocked", "finished_layoffs", "upcard"]
    if view["phase"] < DECLARE:
        names.append("known_cards")
    for name in names:
        assert getattr(imagined, name)() == getattr(state, name)(), name
    # A view does not tell in which order.
    assert sorted(imagined.layoffs()) == sorted(state.layoffs())


@pytest.mark.parametrize(
    ("options", "hands"),
    [
        ({}, 20),
        ({"oklahoma": True}, 8),
        ({"hand_size": 7}, 8),
        pytest.param({}, 600, marks=pytest.mark.slow),
        pytest.param({"oklahoma": True}, 150, marks=pytest.mark.slow),
        pytest.param({"hand_size": 7}, 150, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_imagined_states(options: dict[str, Any], hands: int) -> None:
    """Hands from the first decision to the last, some with melds dealt, some with takes, errors and swaps."""
    game = pyspiel.load_game("gin_rummy", options)
    rng, root, shadow = Random(str(options)), game.new_initial_state(), openspiel.Shadow(game)
    seen: Counter[str] = Counter()
    for hand in range(hands):
        state = root.clone()
        deck = rich_deck(rng) if hand % 2 else rng.sample(range(NUM_CARDS), NUM_CARDS)
        cards = dealt(game, deck)
        bots = [openspiel.AgentBot(agents.make("greedy" if hand % 3 else "gin-only")) for _ in range(2)]
        takes, errs = rng.choice([0.0, 0.8]), rng.choice([0.2, 1.0])
        while not state.is_terminal():
            actions = state.legal_actions()
            if not state.is_chance_node():
                shadow.follow(state)
                if not shadow.knock_said:
                    view = observe(shadow.tables)[0]
                    # Of the many draws and throws a part.
                    if view["phase"] not in (DRAW_ANY, THROW) or rng.random() < 0.2:
                        seen[PHASES[view["phase"]]] += 1
                        check_imagined(state, view)
            # Who has said that it knocks by chance goes on by chance: a player that would not have does not know how.
            if state.is_chance_node():
                action = next(cards)
            elif shadow.knock_said or rng.random() < errs:
                action = TAKE_UPCARD if TAKE_UPCARD in actions and rng.random() < takes else rng.choice(actions)
            else:
                action = bots[state.current_player()].step(state)
            state.apply_action(action)
    print(options, dict(seen))
    if not options:
        rare = {PHASES[WALL_THROW]}
        assert set(seen) >= {PHASES[phase] for phase in range(DEFEND + 1)} - rare


def test_a_knock_at_the_wall(game: Any) -> None:
    """Where the word takes the upcard: from the card below it the story knows that it was not drawn."""
    hands = "AS 2S 3S 4S 5S 6S 7S 8S 9S KD", "KH QH JH TH 9H KC QC JC TC 9C"
    state, shadow = after(game, hands, "QD", "pass,pass"), openspiel.Shadow(game)
    rest = [int(card) for card in CARD if card not in np.flatnonzero(shown(state))]
    while shadow_phase(shadow, state) != WALL:
        state.apply_action(openspiel.DRAW_STOCK)
        card = rest.pop()
        state.apply_action(card)
        state.apply_action(card)
    knocker = state.current_player()
    for action in (SAY_KNOCK, None, None, None):
        check_imagined(state, observe(shadow.tables)[0])
        state.apply_action(state.legal_actions()[-1] if action is None else action)
        shadow.follow(state)
    assert state.knocked()[knocker]


def shown(state: Any) -> np.ndarray:
    """Returns which cards have been dealt, (52,) in their numbers."""
    dealt_ = np.zeros(NUM_CARDS, dtype=bool)
    dealt_[state.history()[:21]] = True
    return dealt_


def shadow_phase(shadow: Any, state: Any) -> int:
    """Returns the phase at a table that follows a state."""
    shadow.follow(state)
    return int(shadow.tables["phase"][0])


def test_a_knock_that_they_refuse() -> None:
    """Their deadwood of these eleven cards is 11, ours 10; the made-up knock throws another card."""
    knocker, defender = "6S 7S 8S 9S 7H 8H 2D 7D 8D 2C", "KS KH QS QH JS JH TS TH 4S 4H"
    cards = [parse_cards(knocker), parse_cards(defender), parse_cards("8C")]
    deck = [card for pair in zip(*cards[:2], strict=True) for card in pair] + cards[2]
    deck += [card for card in range(NUM_CARDS) if card not in deck]
    tables = engine.new_tables("openspiel", 1)
    engine.deal(tables, decks=[deck])
    for name in ("take", "knock 9S"):
        engine.step(tables, [parse_action(name)])
    lays = agents.make("greedy")
    while tables["phase"][0] == DECLARE:
        keys = np.zeros(1, dtype=np.uint64)
        engine.step(tables, lays.act(observe(tables), engine.legal(tables), keys))
    assert tables["phase"][0] == LAY_OFF
    imagined, since = openspiel.imagine(pyspiel.load_game("gin_rummy").new_initial_state(), observe(tables)[0])
    assert since == []
    assert imagined.current_player() == 1
    assert int(CARD[parse_card("9S")]) not in imagined.discard_pile()
    chosen = openspiel.OpenSpielAgent().act(observe(tables), engine.legal(tables), np.zeros(1, dtype=np.uint64))
    assert chosen.tolist() == [PASS]
    waiting = observe(tables, 0)[0]
    with pytest.raises(ValueError, match="not to move"):
        openspiel.imagine(imagined, waiting)


def test_their_bot_plays_here_as_there(game: Any) -> None:
    """The same deals, move by move, both players through their adapters."""
    records: list[Record] = []
    greedy = agents.make("greedy")
    result = play_match(openspiel.OpenSpielAgent(), greedy, deals=15, rules="openspiel", seed=4, record=records.append)
    assert result.versions[0].startswith("open-spiel ")
    for number, record in enumerate(records):
        (hand,) = record.hands
        bots = [openspiel.AgentBot(greedy), openspiel.AgentBot(greedy)]
        bots[number % 2] = openspiel.simple_bot(game, number % 2)
        doubts = Doubts(game)
        state = play_there(game, list(hand.deck), bots, doubts)
        if not doubts.found:
            assert moves_of(game, state) == list(hand.moves)
            assert state.returns() == points_of(hand.result)


def test_the_batch_makes_no_difference() -> None:
    games = [
        play_match(openspiel.OpenSpielAgent(), agents.make("greedy"), deals=4, rules="openspiel", batch=batch).games
        for batch in (1, 8)
    ]
    assert (games[0] == games[1]).all()


@pytest.mark.parametrize("options", ["oklahoma=true", "hand_size=7", "first_dealer=0", "knock_limit=0"])
def test_their_bot_under_other_rules(options: str) -> None:
    result = play_match(openspiel.OpenSpielAgent(), agents.make("random"), deals=4, rules=f"openspiel:{options}")
    assert result.points_per_hand > 0


def test_rules_that_they_do_not_play() -> None:
    with pytest.raises(ValueError, match="OpenSpiel plays those of the preset"):
        play_match(openspiel.OpenSpielAgent(), agents.make("random"), deals=1, rules="cardpuzzle")


def test_another_bot() -> None:
    """Whose answers within a knock differ from one time to the next."""

    def uniform(game: Any, player: int) -> Any:
        return pyspiel.make_uniform_random_bot(player, 3)

    result = play_match(openspiel.OpenSpielAgent(uniform, "uniform"), agents.make("greedy"), deals=4, rules="openspiel")
    assert result.a == "uniform"
    assert result.points_per_hand < 0


def simple_there(game: Any, hands: int) -> tuple[float, float]:
    """Returns what their simple bot wins against random in their game, and the half of its 95 % interval."""
    rng = Random(0)
    bots = [openspiel.simple_bot(game, 0), pyspiel.make_uniform_random_bot(1, 7)]
    points = []
    for _ in range(hands):
        points += play_there(game, rng.sample(range(NUM_CARDS), NUM_CARDS), bots).returns()[:1]
    return float(np.mean(points)), 1.96 * float(np.std(points)) / len(points) ** 0.5


@pytest.mark.parametrize(("hands", "deals"), [(400, 30), pytest.param(4000, 600, marks=pytest.mark.slow)])
def test_their_bot_wins_as_much_here_as_there(game: Any, hands: int, deals: int) -> None:
    """Against random about 56.5 points a hand."""
    there, half = simple_there(game, hands)
    result = play_match(openspiel.OpenSpielAgent(), agents.make("random"), deals=deals, rules="openspiel")
    here, other_half = result.points_per_hand, (result.ci95[1] - result.ci95[0]) / 2
    print(f"there {there:.2f} +- {half:.2f}, here {here:.2f} +- {other_half:.2f}")
    # Twice the interval: one test in many thousands fails by chance.
    assert abs(there - 56.5) < 2 * half
    assert abs(here - there) < 2 * (half**2 + other_half**2) ** 0.5
