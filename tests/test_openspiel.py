"""Against OpenSpiel's gin rummy: the same deals and choices, the same legal actions at every step, the same scores.

The two write a hand down differently. OpenSpiel's suits go s c d h, its knock is two actions (the word, then the
discard), so is a knock at the wall, and a layoff names no meld: it is taken for one on the run that the card fits, or
else on the set. Everything else is one to one.

OpenSpiel is wrong in places. `EXCUSES` holds what is known, each by name with a predicate that is asked of the slow
reference (`tests.reference`), and a difference that no excuse covers fails. Where one does, play goes on with an
action that both allow.
"""

import os
from collections import Counter
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from gin_env import Rules, engine, melds, preset
from gin_env.actions import (
    BIG_GIN,
    DISCARD,
    DRAW,
    KNOCK,
    LAYOFF,
    MAX_MELDS,
    MELD,
    MELDS,
    NUM_MANUAL_ACTIONS,
    NUM_MELDS,
    PASS,
    TAKE,
    action_name,
    parse_action,
)
from gin_env.cards import NO_CARD, NUM_CARDS, SUITS, cards_text, parse_card, parse_cards, to_mask
from gin_env.tables import DECLARE, LAY_OFF, PHASES, THROW, WALL, WALL_THROW
from tests import reference
from tests.hands import DRAWS

pyspiel: Any = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install 'gin-env[peers]'")
pytestmark = pytest.mark.interop

# ----------------------------------------------------------------------------------------------- one another's words

# Their actions.
TAKE_UPCARD, DRAW_STOCK, STOP, SAY_KNOCK, LAY, NUM_THEIRS = 52, 53, 54, 55, 56, 241
# Our suits S H D C in their order.
_SUITS = ["SCDH".index(suit) for suit in SUITS]
CARD = np.array([_SUITS[card // 13] * 13 + card % 13 for card in range(NUM_CARDS)])
OUR_CARD = np.argsort(CARD)


def their_cards(names: list[str]) -> int:
    """Returns the set of cards of their names."""
    return to_mask(parse_card(name) for name in names)


def their_meld(meld: int) -> int:
    """Returns their number of a meld: sets by rank and missing suit, then runs by length, suit and lowest rank."""
    cards = sorted(int(CARD[card]) for card in reference.cards_of(meld))
    suit, rank = divmod(cards[0], 13)
    if cards[1] - cards[0] == 13 or cards[1] // 13 > suit:
        missing = {0, 1, 2, 3} - {card // 13 for card in cards}
        return 5 * rank + (missing.pop() if missing else 4)
    first = {3: 65, 4: 109, 5: 149}[len(cards)]
    return first + suit * (14 - len(cards)) + rank


def _theirs() -> np.ndarray:
    theirs = np.full(NUM_MANUAL_ACTIONS, -1)
    theirs[[PASS, DRAW, TAKE]] = STOP, DRAW_STOCK, TAKE_UPCARD
    theirs[DISCARD:KNOCK] = CARD
    theirs[KNOCK:BIG_GIN] = SAY_KNOCK
    theirs[MELD:LAYOFF] = [LAY + their_meld(int(meld)) for meld in MELDS]
    theirs[LAYOFF:] = np.tile(CARD, MAX_MELDS)
    return theirs


# (449,): the action of theirs that each of ours is, the first of two for a knock.
THEIRS = _theirs()


def test_action_names() -> None:
    """The table above, by the names that they give their actions."""
    state = pyspiel.load_game("gin_rummy").new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    words = {PASS: "Pass", DRAW: "Draw stock", TAKE: "Draw upcard"}
    for action in range(NUM_MANUAL_ACTIONS):
        if action == BIG_GIN:
            assert THEIRS[action] == -1
            continue
        name = state.action_to_string(0, int(THEIRS[action])).removeprefix("Player: 0 Action: ")
        if action in words:
            assert name == words[action]
        elif KNOCK <= action < BIG_GIN:
            assert name == "Knock"
        else:
            cards = parse_cards([name[at : at + 2] for at in range(0, len(name), 2)])
            ours = action_name(action).split()[1:]
            assert to_mask(cards) == to_mask(parse_cards(ours if MELD <= action < LAYOFF else ours[:1]))
    assert sorted(set(THEIRS[MELD:LAYOFF].tolist())) == list(range(LAY, NUM_THEIRS))
    assert NUM_MELDS == NUM_THEIRS - LAY


# ---------------------------------------------------------------------------------------------------------- excuses


class Dispute(NamedTuple):
    """A position in which we allow what they do not, or the other way round."""

    table: np.void
    ours: list[int]  # actions that only we allow, in their numbers
    theirs: list[int]  # actions that only they allow


def _hand(table: np.void) -> int:
    """Returns the mover's hand, with the upcard at the wall."""
    hand = int(table["hands"][table["mover"]])
    return hand | 1 << int(table["pile"][table["pile_size"] - 1]) if table["phase"] == WALL else hand


def deadwood_of_eleven(dispute: Dispute) -> bool:
    """They judge a card too many by its best melds and throw the dearest loose card, which need not be the best throw.

    So a knock is refused although a throw leaves little enough. True if that is all that is in dispute, the reference
    finds such a throw, and with some best arrangement of all the cards theirs leaves too much.
    """
    table, limit = dispute.table, int(dispute.table["limit"])
    if table["phase"] not in (THROW, WALL) or dispute.ours != [SAY_KNOCK] or dispute.theirs:
        return False
    hand = _hand(table)
    loose = [reference.loose_cards(hand, way) for way in reference.arrangements(hand)]
    least = min(map(reference.points, loose))
    dearest = [
        least - max((reference.POINTS[card] for card in reference.cards_of(cards)), default=0)
        for cards in loose
        if reference.points(cards) == least
    ]
    return bool(reference.knock_discards(hand, limit)) and max(dearest) > limit


def third_layoff(dispute: Dispute) -> bool:
    """They let a run grow by two cards in each direction.

    True if all that is in dispute are layoffs, each of which the reference allows, beyond two or more cards that were
    laid off on one side of a run.
    """
    table = dispute.table
    if table["phase"] != LAY_OFF or dispute.theirs:
        return False

    def is_third(card: int) -> bool:
        for meld, laid in zip(table["laid"][table["knocking"]].tolist(), table["laid_off"].tolist(), strict=True):
            if not meld or reference.IS_SET[meld] or not reference.can_lay_off(laid | 1 << card, meld):
                continue
            cards = reference.cards_of(meld)
            between = range(card + 1, cards[0]) if card < cards[0] else range(cards[-1] + 1, card)
            if len(between) >= 2 and all(laid >> other & 1 for other in between):
                return True
        return False

    return all(action < NUM_CARDS and is_third(int(OUR_CARD[action])) for action in dispute.ours)


def nothing_but_threes(dispute: Dispute) -> bool:
    """They let a player knock whose cards are all in melds of three, although any throw breaks one.

    It takes nine cards, or six: hands of another size. True if that is all that is in dispute, and the reference finds
    an arrangement that leaves nothing, but no throw that leaves little enough.
    """
    table = dispute.table
    if table["phase"] not in (THROW, WALL) or dispute.ours or dispute.theirs != [SAY_KNOCK]:
        return False
    hand = _hand(table)
    return reference.deadwood(hand) == 0 and not reference.knock_discards(hand, int(table["limit"]))


EXCUSES = {
    "deadwood of eleven": deadwood_of_eleven,
    "third layoff": third_layoff,
    "nothing but threes": nothing_but_threes,
}


# ------------------------------------------------------------------------------------------------------------- play


class Policy(NamedTuple):
    """How a hand is played, in terms of log-weights of actions."""

    take: float = 0.0  # of the upcard, not at the wall
    swap: float = 0.0  # of throwing back the card just taken
    knock: float = 0.0  # in the draw phases; at the wall whoever can does
    points: float = 0.0  # for each point of deadwood that a throw leaves, negative
    gin: float = 0.0  # more for knocking with nothing left
    stop: float = 0.0  # of passing in the showdown


POLICIES = {
    "uniform": Policy(),
    "meld-keeping": Policy(swap=-2.0, knock=1.0, points=-0.5, stop=-2.0),
    "always-knock": Policy(take=-1.0, swap=-50.0, knock=50.0, points=-2.0, stop=-4.0),
    "swap-happy": Policy(take=2.0, swap=2.0, knock=-1.0, points=-0.1, stop=-1.0),
    "draw-only": Policy(take=-50.0, knock=-50.0, points=-1.0, stop=-2.0),
    "take-only": Policy(take=50.0, swap=-50.0, knock=-50.0, points=-0.05),
    "gin-only": Policy(swap=-50.0, knock=-50.0, gin=60.0, points=-2.0, stop=-4.0),
    "careless": Policy(swap=-1.0, knock=50.0, points=-0.3, stop=1.0),
}
_FIELDS = np.array(list(POLICIES.values()))


def choose(tables: np.ndarray, mask: np.ndarray, policies: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns an action of the mask for each table, as its policy likes."""
    take, swap, knock, points, gin, stop = _FIELDS[policies].T
    rows, phase = np.arange(tables.size), tables["phase"]
    with np.errstate(divide="ignore"):
        weight = np.where(mask, -np.log(-np.log(rng.random(mask.shape))), -np.inf)
    hands = tables["hands"][rows, tables["mover"]]
    throws = (phase == THROW) | (phase == WALL_THROW)
    left = melds.deadwood_after(np.where(throws, hands, np.uint64(0))).astype(float)
    weight[:, DISCARD:KNOCK] += points[:, None] * left
    weight[:, KNOCK:BIG_GIN] += points[:, None] * left + knock[:, None] + gin[:, None] * (left == 0)
    weight[:, TAKE] += np.where(phase == WALL, 3.0, take)
    taken = np.maximum(tables["taken"].astype(int), 0)
    weight[rows, DISCARD + taken] += np.where(tables["taken"] != NO_CARD, swap, 0.0)
    weight[:, PASS] += np.where(phase >= DECLARE, stop, 0.0)
    return weight.argmax(axis=1)


def rich_deck(rng: Random, size: int) -> list[int]:
    """Returns a deck that deals two hands of ``size`` cards with melds, and more of their kind on top of the stock."""
    left = rng.sample(range(52), 52)
    hands = []
    for _ in range(2):
        wished = rng.choice(DRAWS)(rng, 10)
        left.sort(key=lambda card, wished=wished: card not in wished)
        hands.append(left[:size])
        left = left[size:]
    near = rng.choice(DRAWS)(rng, 20)
    left.sort(key=lambda card: rng.random() + (card not in near) * rng.random())
    return [card for pair in zip(*hands, strict=True) for card in pair] + left


class Comparison:
    """Plays the same hands here and there and compares at every step.

    Args:
        rules: Ours.
        parameters: Theirs.
        hands: Hands to play.
        seed: Of deals and choices.
        batch: Tables at once.
    """

    def __init__(self, rules: Rules, parameters: dict[str, Any], hands: int, seed: int = 0, batch: int = 128) -> None:
        self.rng, self.card_rng = np.random.default_rng(seed), Random(f"{seed} decks")
        self.game = pyspiel.load_game("gin_rummy", parameters)
        self.root = self.game.new_initial_state()
        self.hands = self.left = hands
        self.tables = engine.new_tables(rules, min(batch, hands))
        self.states = [self.root] * self.tables.size
        self.policies = np.zeros(self.tables.size, dtype=int)
        self.steps = 0
        self.endings: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()  # by name, how often
        self.showdowns: Counter[str] = Counter()  # what occurred in the hands
        self.start(np.arange(self.tables.size))

    def play(self) -> None:
        """Plays all hands."""
        while self.tables.size:
            self.step()

    def start(self, rows: np.ndarray) -> None:
        """Deals at some tables, or drops those for which no hand is left."""
        dealt, dropped = rows[: self.left], rows[self.left :]
        self.left -= dealt.size
        for row in dealt:
            rich = self.card_rng.random() < 0.7
            size = int(self.tables["rules"]["hand_size"][row])
            deck = rich_deck(self.card_rng, size) if rich else self.card_rng.sample(range(52), 52)
            engine.deal(self.tables, [row], [deck])
            state = self.states[row] = self.root.clone()
            for card in (*deck[0 : 2 * size : 2], *deck[1 : 2 * size : 2], deck[2 * size]):
                state.apply_action(int(CARD[card]))
            self.policies[row] = self.card_rng.randrange(len(POLICIES))
        if dropped.size:
            keep = np.delete(np.arange(self.tables.size), dropped)
            self.tables, self.policies = self.tables.take(keep), self.policies[keep]
            self.states = [self.states[row] for row in keep]

    def step(self) -> None:
        """Compares what is legal and plays an action at each table."""
        tables = self.tables
        mask = engine.legal(tables) != 0
        rows, actions = np.nonzero(mask)
        names = THEIRS[actions]
        names[(actions == TAKE) & (tables["phase"][rows] == WALL)] = SAY_KNOCK
        if (tables["phase"] == WALL_THROW).any():
            # Their knock has been said already: the discard is left.
            late = (tables["phase"][rows] == WALL_THROW) & (names == SAY_KNOCK)
            names[late] = CARD[actions[late] - KNOCK]
        ours = np.zeros((tables.size, NUM_THEIRS), dtype=bool)
        ours[rows, names] = True
        theirs = np.zeros_like(ours)
        for row, state in enumerate(self.states):
            assert state.current_player() == tables["mover"][row], self.story(row)
            theirs[row, state.legal_actions()] = True
        self.steps += tables.size

        for row in np.flatnonzero((ours != theirs).any(axis=1)):
            self.excuse(row, ours[row], theirs[row])
        mask[rows, actions] &= theirs[rows, names]
        for row in np.flatnonzero(mask[:, KNOCK:BIG_GIN].any(axis=1) & (tables["phase"] == THROW)):
            self.compare_knocks(row, mask[row, KNOCK:BIG_GIN])
        self.prefer_runs(mask)

        chosen = choose(tables, mask, self.policies, self.rng)
        for row, action in enumerate(chosen.tolist()):
            self.follow(row, action)
        points, over = engine.step(tables, chosen)
        ended = np.flatnonzero(over)
        for row in ended:
            self.compare_result(row, points[row].tolist())
        for row in np.flatnonzero(over == 0):
            assert not self.states[row].is_terminal(), self.story(row)
        if ended.size:
            self.start(ended)

    def excuse(self, row: int, ours: np.ndarray, theirs: np.ndarray) -> None:
        """Counts the excuse for a difference, or fails."""
        dispute = Dispute(
            self.tables[row], np.flatnonzero(ours & ~theirs).tolist(), np.flatnonzero(theirs & ~ours).tolist()
        )
        for name, covers in EXCUSES.items():
            if covers(dispute):
                self.excused[name] += 1
                return
        pytest.fail(f"only ours: {dispute.ours}, only theirs: {dispute.theirs}\n{self.story(row)}")

    def compare_knocks(self, row: int, ours: np.ndarray) -> None:
        """Compares the discards with which a player may knock."""
        state = self.states[row].clone()
        state.apply_action(SAY_KNOCK)
        assert sorted(CARD[np.flatnonzero(ours)].tolist()) == state.legal_actions(), self.story(row)

    def prefer_runs(self, mask: np.ndarray) -> None:
        """Leaves of the layoffs of a card the one that theirs is."""
        tables = self.tables
        for row in np.flatnonzero((tables["phase"] == LAY_OFF) & mask[:, LAYOFF:].any(axis=1)):
            places = mask[row, LAYOFF:].reshape(MAX_MELDS, NUM_CARDS)
            laid = tables["laid"][row, tables["knocking"][row]].tolist()
            for card in np.flatnonzero(places.sum(axis=0) > 1):
                slots = np.flatnonzero(places[:, card])
                runs = [slot for slot in slots if not reference.IS_SET[laid[slot]]]
                places[:, card] = False
                places[(runs or slots)[0], card] = True
                self.showdowns["layoff on run or set"] += 1

    def follow(self, row: int, action: int) -> None:
        """Plays one of our actions there, and deals what it draws."""
        state, table = self.states[row], self.tables[row]
        phase = table["phase"]
        if phase == WALL and action == TAKE:
            state.apply_action(SAY_KNOCK)
            self.showdowns["knock at the wall"] += 1
        elif phase == WALL_THROW:
            state.apply_action(int(CARD[action - KNOCK]))
        elif KNOCK <= action < BIG_GIN:
            state.apply_action(SAY_KNOCK)
            state.apply_action(int(CARD[action - KNOCK]))
        else:
            state.apply_action(int(THEIRS[action]))
        if action == DRAW:
            state.apply_action(int(CARD[table["deck"][table["stock_at"]]]))
        if phase >= DECLARE and action != PASS:
            self.showdowns["layoff" if action >= LAYOFF else "meld"] += 1

    def compare_result(self, row: int, points: list[int]) -> None:
        """Compares the end of a hand: points, deadwood, and where the cards are."""
        state, table, story = self.states[row], self.tables[row], self.story(row)
        assert state.is_terminal(), story
        assert state.returns() == points, story
        result, told = engine.result(self.tables, row), state.to_dict()
        assert result is not None
        # The card whose taking ends the hand does not move there any more.
        last = to_mask([table["taken"]]) if table["taken"] != NO_CARD else 0
        left = [int(hand) & ~last for hand in table["final_hands"]]
        if result.knocker is None:
            self.endings[self.dead_by(table)] += 1
            deadwood = melds.deadwood(np.array(left, dtype=np.uint64)).tolist()
        else:
            self.endings[result.ending] += 1
            deadwood = list(result.deadwood)
            for seat in range(2):
                left[seat] = reference.loose_cards(left[seat], table["melds"][seat].tolist())
            defender = 1 - result.knocker
            left[defender] = reference.loose_cards(left[defender], table["layoffs"].tolist())
        assert [their_cards(hand) for hand in told["hands"]] == left, story
        assert told["deadwood"] == deadwood, story
        pile = [*told["discard_pile"], *([told["upcard"]] if told["upcard"] else [])]
        assert their_cards(pile) == to_mask(table["pile"][: table["pile_size"]]) | last, story
        assert told["stock_size"] == table["rules"]["deck_size"] - table["stock_at"], story
        assert (told["knocked"].index(True) if any(told["knocked"]) else None) == result.knocker, story

    def dead_by(self, table: np.void) -> str:
        """Says why a hand is dead."""
        if table["takes"] == table["rules"]["take_cap"]:
            return "take cap"
        return "swap cap" if table["swaps"] == table["rules"]["swap_cap"] else "wall"

    def story(self, row: int) -> str:
        """Tells how a table came to where it is, for the message of a failure."""
        table = self.tables[row]
        moves = ", ".join(action_name(int(move)) for move in table["moves"][: table["num_moves"]])
        phase = PHASES[table["phase"]]
        return f"{self.game}\ndeck {cards_text(table['deck'])}\n{moves}\n{phase}\n{self.states[row]}"


# ------------------------------------------------------------------------------------------------------------ tests


# Our rules and their parameters.
GAMES: dict[str, tuple[Rules, dict[str, Any]]] = {
    "openspiel": (preset("openspiel"), {}),
    "oklahoma": (preset("openspiel", oklahoma=True), {"oklahoma": True}),
    "limit-4": (preset("openspiel", knock_limit=4), {"knock_card": 4}),
    "gin-only": (preset("openspiel", knock_limit=0, gin_bonus=50), {"knock_card": 0, "gin_bonus": 50}),
    "no-bonus": (preset("openspiel", gin_bonus=0, undercut_bonus=0), {"gin_bonus": 0, "undercut_bonus": 0}),
    "undercut-10": (preset("openspiel", undercut_bonus=10), {"undercut_bonus": 10}),
    "seven-cards": (preset("openspiel", hand_size=7), {"hand_size": 7}),
    "eight-cards": (preset("openspiel", hand_size=8), {"hand_size": 8}),
}
NUM_HANDS = int(os.environ.get("GINRUMMY_HANDS", "20000"))


def report(comparison: Comparison) -> str:
    """Says what was compared, for `pytest -s`."""
    parts = [f"{key}: {dict(value)}" for key, value in vars(comparison).items() if isinstance(value, Counter)]
    return f"{comparison.game}: {comparison.hands} hands, {comparison.steps} decisions; " + "; ".join(parts)


@pytest.mark.parametrize("name", GAMES)
def test_same_hands(name: str) -> None:
    comparison = Comparison(*GAMES[name], hands=250 if name == "openspiel" else 50)
    comparison.play()
    print(report(comparison))


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_many_of_the_same_hands(name: str) -> None:
    """GINRUMMY_HANDS hands of OpenSpiel's own game, and a tenth of them of each variant."""
    hands = NUM_HANDS if name == "openspiel" else max(NUM_HANDS // 10, 1)
    comparison = Comparison(*GAMES[name], hands=hands, seed=1)
    comparison.play()
    print(report(comparison))
    assert sum(comparison.endings.values()) == hands
    if hands >= 20_000:
        endings = {"knock", "gin", "undercut", "tie", "wall", "swap cap", "take cap"}
        assert set(comparison.endings) == endings
        assert {"meld", "layoff", "layoff on run or set", "knock at the wall"} == set(comparison.showdowns)
        assert {"deadwood of eleven", "third layoff"} == set(comparison.excused)
        # They are rare: what is excused is no cloak for something else.
        assert sum(comparison.excused.values()) < comparison.steps / 1000


# ------------------------------------------------------------------------------------------------- that they are wrong


def both(hands: tuple[str, str], upcard: str, **options: Any) -> tuple[np.ndarray, Any]:
    """Deals a hand here and there, with options that have one name on both sides.

    Args:
        hands: Of player 0, who opens, and of player 1.
        upcard: The upcard.
        **options: ``hand_size`` and ``oklahoma``.
    """
    cards, top = [parse_cards(hand) for hand in hands], parse_card(upcard)
    used = {*cards[0], *cards[1], top}
    deck = [card for pair in zip(*cards, strict=True) for card in pair] + [top]
    deck += [card for card in range(NUM_CARDS) if card not in used]
    tables = engine.new_tables(preset("openspiel", **options), 1)
    engine.deal(tables, decks=[deck])
    state = pyspiel.load_game("gin_rummy", options).new_initial_state()
    for card in (*cards[0], *cards[1], top):
        state.apply_action(int(CARD[card]))
    return tables, state


def take(tables: np.ndarray, state: Any) -> int:
    """Player 0 takes the upcard; returns its cards, one too many."""
    engine.step(tables, [TAKE])
    state.apply_action(TAKE_UPCARD)
    return int(tables["hands"][0, 0])


def knocks(tables: np.ndarray) -> list[str]:
    """Returns the knocks that we allow."""
    return [action_name(action) for action in engine.legal_actions(tables) if action >= KNOCK]


def test_they_misjudge_eleven_cards() -> None:
    """Throwing the 9S leaves 6S 2D 2C: a knock. They lay the run 6S to 9S, throw a seven and find eleven left."""
    hand = "6S 7S 8S 9S 7H 8H 2D 7D 8D 2C"
    tables, state = both((hand, "KS KH QS QH JS JH TS TH 4S 4H"), "8C")
    eleven = take(tables, state)
    assert reference.knock_discards(eleven) == {parse_card("9S"): 10}
    assert knocks(tables) == ["knock 9S"]
    assert SAY_KNOCK not in state.legal_actions()
    dispute = Dispute(tables[0], [SAY_KNOCK], [])
    assert deadwood_of_eleven(dispute)
    assert not deadwood_of_eleven(dispute._replace(theirs=[3]))
    assert not deadwood_of_eleven(dispute._replace(ours=[3, SAY_KNOCK]))
    # With any card that they judge rightly there is no excuse, whether the knock is good or not.
    for other in ("KD", "6D", "9D"):
        tables["hands"][0, 0] = to_mask(parse_cards(f"{hand} {other}"))
        assert not deadwood_of_eleven(dispute)


def test_they_refuse_gin_after_an_ace() -> None:
    """The upcard is an ace, so under Oklahoma only gin may knock. Throwing the 4S is gin; they find a point left."""
    tables, state = both(("AS 2S 3S 2H 2D 2C AC 3C 4C 5C", "KS KH QS QH JS JH TS TH 9S 9H"), "AD", oklahoma=True)
    eleven = take(tables, state)
    assert tables["limit"][0] == 0
    assert reference.knock_discards(eleven, 0)
    assert knocks(tables) == [f"knock {cards_text([card])}" for card in sorted(reference.knock_discards(eleven, 0))]
    assert SAY_KNOCK not in state.legal_actions()
    assert deadwood_of_eleven(Dispute(tables[0], [SAY_KNOCK], []))


def test_they_refuse_a_third_layoff() -> None:
    """On 5S 6S 7S the 8S, the 9S, and the TS, which they do not see."""
    knocker, defender = "5S 6S 7S KH KD KC QH QD QC AH", "8S 9S TS 2H 4H 6H 8H TH 3D 5D"
    tables, state = both((knocker, defender), "JD")
    ours = ["take", "knock JD", "meld 5S 6S 7S", "meld KH KD KC", "meld QH QD QC", "pass", "layoff 8S 1", "layoff 9S 1"]
    theirs = [TAKE_UPCARD, SAY_KNOCK, int(CARD[parse_card("JD")])]
    theirs += [int(THEIRS[parse_action(name)]) for name in ours[2:]]
    for name in ours:
        engine.step(tables, [parse_action(name)])
    for action in theirs:
        assert action in state.legal_actions()
        state.apply_action(action)
    table, ten = tables[0], int(CARD[parse_card("TS")])
    assert [action_name(action) for action in engine.legal_actions(tables)] == ["pass", "layoff TS 1"]
    assert state.legal_actions() == [STOP]
    run, three = (to_mask(parse_cards(cards)) for cards in ("5S 6S 7S", "8S 9S TS"))
    assert reference.can_lay_off(three, run)
    assert third_layoff(Dispute(table, [ten], []))
    assert not third_layoff(Dispute(table, [ten], [STOP]))
    assert not third_layoff(Dispute(table, [ten, int(CARD[parse_card("JS")])], []))
    assert not third_layoff(Dispute(table, [int(CARD[parse_card("4S")])], []))
    # One card less in between is the second, which they do see.
    table["laid_off"][0] = to_mask(parse_cards("8S"))
    assert not third_layoff(Dispute(table, [int(CARD[parse_card("9S")])], []))


def test_they_offer_a_knock_without_a_discard() -> None:
    """Nine cards in three sets of three: whatever is thrown breaks one, but they count nothing left and get stuck."""
    hand = "KS KH KD QS QH QD JS JH"
    tables, state = both((hand, "AS 2S 4S 6H 8H TH 3C 5C"), "JD", hand_size=8)
    nine = take(tables, state)
    assert reference.knock_discards(nine) == {}
    assert knocks(tables) == []
    assert SAY_KNOCK in state.legal_actions()
    dispute = Dispute(tables[0], [], [SAY_KNOCK])
    assert nothing_but_threes(dispute)
    assert not nothing_but_threes(dispute._replace(ours=[0]))
    tables["hands"][0, 0] = to_mask(parse_cards("KS KH KD KC QS QH QD JS JH"))
    assert not nothing_but_threes(dispute)
    state.apply_action(SAY_KNOCK)
    assert state.legal_actions() == []
    assert not state.is_terminal()


@pytest.mark.parametrize("changes", [{"knock_limit": 9}, {"rediscard": False, "swap_cap": None}, {"gin_bonus": 24}])
def test_a_difference_without_excuse_fails(changes: dict[str, Any]) -> None:
    """Other rules here than there; the message tells the hand."""
    comparison = Comparison(preset("openspiel", **changes), {}, hands=200)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=r"gin_rummy\(\)\n *deck"):
        comparison.play()
