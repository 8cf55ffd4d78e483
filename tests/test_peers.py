"""The players of other libraries: restated by the reference, and beside the originals where these are installed."""

import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy import stats

import agents
from agents.match import play_match
from gin_env import PRESETS, engine, preset
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE
from gin_env.cards import NO_CARD, NUM_CARDS, parse_cards, to_mask
from gin_env.record import Record
from gin_env.tables import DECLARE, DEFEND, DRAW_ANY, DRAW_STOCK, ENDINGS, LAY_OFF, OVER, PHASES, THROW, WALL
from gin_env.testing import check_agent
from gin_env.view import observe
from tests import reference
from tests.test_agents import keys, played
from tests.test_gin_rummy_v4 import rich_deck
from tests.test_laying import after_knock

PEERS = ("openspiel-simple", "rlcard-novice", "eaai-simple")


def choices(name: str, v: np.void, mask: np.ndarray, samples: int = 400) -> set[int]:
    """Returns what a player plays in a row of a view, by many keys."""
    views = np.repeat(np.array([v]), samples)
    return set(agents.make(name).act(views, np.repeat(mask[None], samples, axis=0), keys(samples, 5)).tolist())


def throws(v: np.void) -> dict[int, int]:
    """Returns the cards that the rules let a player throw, each with the deadwood that it leaves."""
    after = reference.deadwood_after(int(v["hand"]))
    if not v["rules"]["rediscard"]:
        after.pop(int(v["taken"]), None)
    return after


def least(after: dict[int, int]) -> set[int]:
    """Returns the cards that leave the least."""
    return {card for card, left in after.items() if left == min(after.values())}


# ------------------------------------------------------------------------------------------------------ every player


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("rules", PRESETS)
def test_plays_every_preset(name: str, rules: str) -> None:
    assert check_agent(agents.make(name), rules, hands=10, tables=10).decisions > 100


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("rules", PRESETS)
def test_beats_random(name: str, rules: str) -> None:
    """By 35 points a hand or more; the hands come to an end."""
    result = play_match(agents.make(name), agents.make("random"), deals=60, rules=rules)
    assert result.points_per_hand > 35
    assert result.truncated == 0


@pytest.mark.parametrize("name", PEERS)
def test_against_itself_hands_end(name: str) -> None:
    for rules in ("cardpuzzle", "eaai", "openspiel", "plus20"):
        assert play_match(agents.make(name), agents.make(name), deals=100, rules=rules).truncated == 0


# -------------------------------------------------------------------------------------------------- openspiel-simple


def openspiel_order(meld: int, hand: int) -> tuple[int, ...]:
    """Returns by what the melds of a hand are ordered."""
    cards = reference.cards_of(meld)
    low = cards[0]
    if not reference.IS_SET[meld]:
        return 2, -len(cards), "SCDH".index("SHDC"[low // 13]), low % 13
    rank = low % 13
    if sum(hand >> 13 * suit + rank & 1 for suit in range(4)) < 4:
        return 1, rank, 0
    if len(cards) == 4:
        return 0, rank, 0
    missing = ({0, 1, 2, 3} - {card // 13 for card in cards}).pop()
    return {2: (0, rank, 1), 3: (0, rank, 2), 1: (1, rank, 0), 0: (1, rank, 1)}[missing]


def openspiel_best(hand: int) -> list[int]:
    """Returns the best melds of a hand by the docstring."""
    held = [meld for meld in reference.MELDS if meld & hand == meld and meld.bit_count() <= 5]
    held.sort(key=lambda meld: openspiel_order(meld, hand))

    def groups(first: int, used: int) -> Iterator[list[int]]:
        yield []
        for k in range(first, len(held)):
            if not held[k] & used:
                for group in groups(k + 1, used | held[k]):
                    yield [held[k], *group]

    return max(groups(0, 0), key=lambda group: sum(reference.MELD_POINTS[meld] for meld in group))


def their_suit(card: int) -> tuple[int, int]:
    """Returns by what they order cards."""
    return "SCDH".index("SHDC"[card // 13]), card % 13


def openspiel_restated(v: np.void, mask: np.ndarray) -> int:
    """What the docstring says, in the phases before a knock."""
    hand, upcard, loose_points = int(v["hand"]), int(v["upcard"]), reference.POINTS
    if v["phase"] == DRAW_STOCK:
        return DRAW
    if v["phase"] == WALL:
        return TAKE if mask[TAKE] else PASS
    if v["phase"] < THROW:
        hand |= 1 << upcard
        loose = reference.cards_of(reference.loose_cards(hand, openspiel_best(hand)))
        throwable = [card for card in loose if v["rules"]["rediscard"] or card != upcard]
        left = sum(loose_points[card] for card in loose) - max((loose_points[card] for card in throwable), default=0)
        if upcard not in loose or left <= v["limit"]:
            return TAKE
        return DRAW if v["phase"] == DRAW_ANY else PASS
    if mask[BIG_GIN]:
        return BIG_GIN
    after = throws(v)
    loose = [card for card in reference.cards_of(reference.loose_cards(hand, openspiel_best(hand))) if card in after]
    knocks = [card for card in after if mask[KNOCK + card]]
    if reference.loose_cards(hand, openspiel_best(hand)):
        best = max(loose, key=lambda card: (card % 13, their_suit(card)), default=None)
    else:
        spare = [card for meld in openspiel_best(hand) for card in sorted(reference.cards_of(meld), key=their_suit)]
        best = next((card for card in spare if after.get(card) == 0), None)
    if best is None or (knocks and best not in knocks):
        best = max(least(after), key=lambda card: (card % 13, card // 13))
    return best + (KNOCK if best in knocks else DISCARD)


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20", "openspiel", "rummyplus:wall=knock"])
def test_openspiel_simple_restated(rules: str) -> None:
    agent, phases = agents.make("openspiel-simple"), Counter[int]()
    for steps in (0, 1, 2, 9, 14, 27, 40, 61, 80, 97):
        t = played(rules, 16, steps, seed=steps)
        views, masks = observe(t), engine.legal(t)
        for v, mask, chosen in zip(views, masks, agent.act(views, masks, keys(16)).tolist(), strict=True):
            if v["phase"] < DECLARE:
                assert chosen == openspiel_restated(v, mask)
                phases[int(v["phase"])] += 1
    assert phases[DRAW_ANY] > 20
    assert phases[THROW] > 20


@pytest.mark.parametrize(
    ("cards", "thrown"),
    [
        ("AS 2S 3S 4S 9H 9D 9C KS KH KD KC", "KS"),  # the set of four comes first, and its spade
        ("AS 2S 3S 4S 9H 9D 9C KS KH KD 5S", "AS"),  # of the sets none can be spared
        ("6S 6H 6D AD 2D 3D 4D 5D 7H 8H 9H", "6S"),  # the other sixes go on the runs
    ],
)
@pytest.mark.parametrize("rules", ["luciano", "openspiel"])
def test_openspiel_simple_where_no_card_is_loose(cards: str, thrown: str, rules: str) -> None:
    hand = parse_cards(cards)[:10] + parse_cards(cards)[-1:]
    v = observe(played(rules, 1, 9, seed=9))[0].copy()
    v["phase"], v["hand"], v["taken"], v["own_known"] = THROW, to_mask(hand), NO_CARD, 0
    mask = np.zeros(PRESETS[rules].num_actions, dtype=np.int8)
    knocks = reference.knock_discards(to_mask(hand))
    mask[[KNOCK + card for card in knocks]] = mask[[DISCARD + card for card in hand]] = 1
    assert choices("openspiel-simple", v, mask, 1) == {openspiel_restated(v, mask)}
    assert openspiel_restated(v, mask) == KNOCK + parse_cards(thrown)[0]


def test_openspiel_simple_lays_its_melds_against_gin_and_never_lays_off() -> None:
    agent = agents.make("openspiel-simple")
    for ace, phase in (("3D", DEFEND), ("AD", LAY_OFF)):
        knocker, defender = f"4H 5H 6H TS TD TC 2S 2D 2C {ace}", "7S 7C 7D 7H 8H KS QD JC 3S 5D"
        if ace == "3D":
            knocker = "4H 5H 6H TS TD TC 2S 2D 2C 2H"
        t = after_knock(preset("openspiel"), knocker, defender, "KD")
        lays = agents.make("greedy")
        while t["phase"][0] == DECLARE:
            engine.step(t, lays.act(observe(t), engine.legal(t), keys(1)))
        assert t["phase"][0] == phase
        while t["phase"][0] != OVER:
            engine.step(t, agent.act(observe(t), engine.legal(t), keys(1)))
        assert t["layoffs"].sum() == 0
        assert t["deadwood"][0, 1] == reference.points(to_mask(parse_cards("8H KS QD JC 3S 5D")))


# ----------------------------------------------------------------------------------------------- beside OpenSpiel's


@pytest.mark.interop
@pytest.mark.parametrize("hands", [30, pytest.param(2000, marks=pytest.mark.slow)])
def test_openspiel_simple_beside_the_original(hands: int) -> None:
    """Move by move in its own game, against itself, a player who waits for gin, and one who plays at random.

    The one difference that is allowed is the original's fault: after the opponent's gin it lays no melds.
    """
    pyspiel: Any = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install 'gin-env[peers]'")
    openspiel: Any = pytest.importorskip("gin_env.adapters.openspiel")
    rng, game = Random(hands), pyspiel.load_game("gin_rummy")
    hands = int(os.environ.get("GINRUMMY_HANDS", hands)) if hands > 100 else hands
    ours = openspiel.AgentBot(agents.make("openspiel-simple"))
    shadow = openspiel.Shadow(game)
    agreed, excused, endings = Counter[str](), Counter[str](), Counter[str]()
    for number in range(hands):
        state, deck = game.new_initial_state(), rich_deck(rng) if number % 2 else rng.sample(range(52), 52)
        cards = iter([*deck[0:20:2], *deck[1:20:2], *deck[20:]])
        other = agents.make(("openspiel-simple", "gin-only", "random")[number % 3])
        bots = [openspiel.simple_bot(game, player) for player in (0, 1)]
        if other.name != "openspiel-simple":
            bots[number // 3 % 2] = openspiel.AgentBot(other, seed=number)
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(int(openspiel.CARD[next(cards)]))
                continue
            player = state.current_player()
            theirs = bots[player].step(state)
            if not isinstance(bots[player], openspiel.AgentBot):
                mine = ours.step(state)
                shadow.follow(state)
                phase, against = PHASES[shadow.tables["phase"][0]], shadow.tables["knocked_with"][0]
                if mine == theirs:
                    agreed[phase] += 1
                elif phase == "defend" and against == 0 and theirs == openspiel.STOP and mine >= openspiel.LAY:
                    excused["melds forfeited after gin"] += 1
                else:
                    pytest.fail(f"they {state.action_to_string(theirs)}, we {state.action_to_string(mine)}\n{state}")
            state.apply_action(theirs)
        shadow.follow(state)
        endings[ENDINGS[shadow.tables["ending"][0]]] += 1
    print(f"{hands} hands: agreed {agreed.total()} {dict(agreed)}, excused {dict(excused)}, endings {dict(endings)}")
    assert agreed.total() > 10 * hands
    assert {"offer", "offer-dealer", "draw-stock", "draw", "throw", "declare", "lay-off", "defend"} <= set(agreed)
    if hands >= 2000:
        assert "wall" in agreed
        assert excused["melds forfeited after gin"] > 0
    assert excused.total() < 0.01 * agreed.total()


# ------------------------------------------------------------------------------------------------------ rlcard-novice


def rlcard_restated(v: np.void, mask: np.ndarray) -> set[int]:
    """The actions that the docstring allows, in the phases before a knock."""
    if v["phase"] == DRAW_STOCK:
        return {DRAW}
    if v["phase"] == WALL:
        return {TAKE if mask[TAKE] else PASS}
    if v["phase"] < THROW:
        return {TAKE, DRAW if v["phase"] == DRAW_ANY else PASS}
    if mask[BIG_GIN]:
        return {BIG_GIN}
    after = throws(v)
    knocks = {card: left for card, left in after.items() if left <= v["limit"]}
    if knocks:
        return {KNOCK + card for card, left in knocks.items() if left == 0 or min(knocks.values()) > 0}
    return {DISCARD + card for card in least(after)}


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20"])
def test_rlcard_novice_restated(rules: str) -> None:
    sizes = Counter[tuple[str, int]]()
    for steps in (0, 1, 2, 9, 14, 27, 40, 55):
        t = played(rules, 12, steps, seed=steps)
        views, masks = observe(t), engine.legal(t)
        for v, mask in zip(views, masks, strict=True):
            allowed = rlcard_restated(v, mask)
            assert choices("rlcard-novice", v, mask) == allowed
            sizes["knock" if min(allowed) >= KNOCK else "other", len(allowed)] += 1
    assert {("other", 1), ("other", 2)} < set(sizes)
    assert max(size for word, size in sizes if word == "knock") > 2


def test_rlcard_novice_chooses_evenly() -> None:
    for steps in (9, 14, 27, 40):
        t = played("cardpuzzle", 12, steps, seed=steps)
        views, masks = observe(t), engine.legal(t)
        for v, mask in zip(views, masks, strict=True):
            allowed = sorted(rlcard_restated(v, mask))
            chosen = agents.make("rlcard-novice").act(
                np.repeat(np.array([v]), 4000), np.repeat(mask[None], 4000, axis=0), keys(4000)
            )
            counts = [int((chosen == action).sum()) for action in allowed]
            assert sum(counts) == 4000
            if len(allowed) > 1:
                assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.interop
@pytest.mark.parametrize("hands", [6, pytest.param(300, marks=pytest.mark.slow)])
def test_rlcard_novice_beside_the_original(hands: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In RLCard's own game the same actions to choose from, at every decision that our rules know."""
    rlcard: Any = pytest.importorskip("rlcard", reason="RLCard is not installed: pip install 'gin-env[peers]'")
    models = pytest.importorskip("rlcard.models.gin_rummy_rule_models")
    from gin_env.adapters import gin_rummy_v4 as v4

    rng, theirs, env = Random(3), rlcard.make("gin-rummy"), v4.GinRummyV4()
    offered: list[list[int]] = []

    def choose(actions: Any) -> int:
        offered.append([int(action) for action in actions])
        return rng.choice(offered[-1])

    agreed, skipped = Counter[str](), 0
    for _ in range(hands):
        deck, dealer = (
            rich_deck(rng) if rng.random() < 0.5 else rng.sample(range(NUM_CARDS), NUM_CARDS),
            rng.randrange(2),
        )
        env.reset(options={"deck": deck, "dealer": dealer})
        order = [*deck[0:20:2], deck[20], *deck[1:20:2], *deck[21:]][::-1]

        class Dealt:
            """What deals the cards there."""

            @staticmethod
            def choice(seats: Any, dealer: int = dealer) -> int:
                return dealer

            @staticmethod
            def shuffle(cards: list[Any], order: list[int] = order) -> None:
                cards[:] = [cards[card] for card in order]

        theirs.game.np_random = Dealt
        state, _ = theirs.reset()
        while not theirs.is_over():
            with monkeypatch.context() as patch:
                patch.setattr(np.random, "choice", choose)
                action = int(models.GinRummyNoviceRuleAgent.step(state))
            their_mask = env.observe(env.agent_selection)["action_mask"]
            assert sorted(state["legal_actions"]) == np.flatnonzero(their_mask).tolist()
            if their_mask[[v4.SCORE, v4.SCORE + 1, v4.DECLARE_DEAD]].any():
                skipped += 1
            else:
                word = "draw" if their_mask[v4.DRAW] else "knock" if offered[-1][0] >= v4.KNOCK else "discard"
                agreed["gin" if their_mask[v4.GIN] else word] += 1
                assert sorted(offered[-1]) == ours_beside(env, their_mask)
            env.step(action)
            state, _ = theirs.step(action)
    print(f"{hands} hands: the same choices {agreed.total()} {dict(agreed)}; not asked {skipped}")
    assert {"draw", "discard", "knock"} <= set(agreed)
    if hands >= 300:
        assert "gin" in agreed


def ours_beside(env: Any, their_mask: np.ndarray) -> list[int]:
    """Returns what ours may choose at the position of a `gin_rummy_v4` environment, in RLCard's numbers."""
    from gin_env.adapters import gin_rummy_v4 as v4

    v = observe(env.tables)[0]
    mask = np.zeros(108, dtype=np.int8)
    mask[[DRAW, TAKE]] = their_mask[[v4.DRAW, v4.PICK_UP]]
    mask[DISCARD:BIG_GIN] = their_mask[v4.DISCARD :]
    gin = set()
    if their_mask[v4.GIN]:
        gin = {KNOCK + card for card, left in reference.deadwood_after(int(v["hand"])).items() if left == 0}
        mask[list(gin)] = 1
    names = {DRAW: v4.DRAW, TAKE: v4.PICK_UP}
    chosen = choices("rlcard-novice", v, mask)
    if gin:
        assert chosen == gin
        return [v4.GIN]
    return sorted(names.get(action, action - DISCARD + v4.DISCARD) for action in chosen)


# -------------------------------------------------------------------------------------------------------- eaai-simple


def eaai_throws(v: np.void) -> set[int]:
    """The cards from which the docstring has it choose the one to throw."""
    hand, taken, thrown = reference.cards_of(int(v["hand"])), int(v["taken"]), int(v["own_thrown"])
    allowed = [card for card in hand if card != taken]
    if taken != NO_CARD and thrown >> taken & 1:
        allowed = [card for card in allowed if not thrown >> card & 1] or allowed
    after = reference.deadwood_after(int(v["hand"]))
    return least({card: after[card] for card in allowed})


def eaai_restated(v: np.void, mask: np.ndarray) -> set[int]:
    """The actions that the docstring allows, in the phases before a knock, the throw at the wall left out."""
    hand, upcard = int(v["hand"]), int(v["upcard"])
    if v["phase"] == DRAW_STOCK:
        return {DRAW}
    if v["phase"] == WALL:
        return {TAKE if mask[TAKE] else PASS}
    if v["phase"] < THROW:
        eleven = hand | 1 << upcard
        if any(meld >> upcard & 1 and meld & eleven == meld for meld in reference.MELDS):
            return {TAKE}
        return {DRAW if v["phase"] == DRAW_ANY else PASS}
    if mask[BIG_GIN]:
        return {BIG_GIN}
    return {card + (KNOCK if mask[KNOCK + card] else DISCARD) for card in eaai_throws(v)}


@pytest.mark.parametrize("rules", ["eaai", "cardpuzzle", "plus20", "rummyplus:wall=knock"])
def test_eaai_simple_restated(rules: str) -> None:
    seen = Counter[str]()
    for steps in (0, 1, 2, 9, 14, 27, 40, 55, 71, 97):
        t = played(rules, 12, steps, seed=steps)
        views, masks = observe(t), engine.legal(t)
        for v, mask in zip(views, masks, strict=True):
            if v["phase"] <= WALL:
                allowed = eaai_restated(v, mask)
                assert choices("eaai-simple", v, mask) == allowed
                seen[PHASES[v["phase"]]] += 1
                seen["several"] += len(allowed) > 1
    assert min(seen["draw"], seen["throw"], seen["several"]) > 10


def test_eaai_simple_does_not_go_round() -> None:
    """A card that it threw comes back: then it throws none that it has thrown before, though one is the best throw."""
    t = played("eaai", 1, 9, seed=9)
    v = observe(t)[0].copy()
    hand = parse_cards("4S 5S 6S 9H 9D 9C 2D 2C KS QH KH")
    v["phase"], v["hand"], v["taken"], v["own_thrown"] = THROW, to_mask(hand), hand[-1], to_mask(hand[-1:])
    mask = np.zeros(449, dtype=np.int8)
    mask[[DISCARD + card for card in hand[:-1]]] = 1
    king, queen = DISCARD + hand[-3], DISCARD + hand[-2]
    # The queen and the other king count ten each.
    assert choices("eaai-simple", v, mask) == {king, queen}
    v["own_thrown"] |= np.uint64(to_mask([hand[-3]]))
    assert choices("eaai-simple", v, mask) == {queen}
    v["own_thrown"] |= np.uint64(to_mask([hand[-2]]))
    assert choices("eaai-simple", v, mask) == {DISCARD + card for card in parse_cards("2D 2C")}
    # It has thrown all that it holds: then as if it had thrown none.
    v["own_thrown"] = to_mask(hand)
    assert choices("eaai-simple", v, mask) == {king, queen}
    # A card that it has not thrown itself brings no one round.
    v["own_thrown"] = to_mask(hand[:-1])
    assert choices("eaai-simple", v, mask) == {king, queen}


def test_what_a_memory_would_change() -> None:
    """The original's rule, with all turns in memory, against the one that a view allows: hardly ever another choice."""
    records: list[Record] = []
    play_match(agents.make("eaai-simple"), agents.make("eaai-simple"), deals=150, rules="eaai", record=records.append)
    turns = differ = 0
    for record in records:
        for v, pairs in turns_of(record):
            after = reference.deadwood_after(int(v["hand"]))
            taken = int(v["taken"])
            drew = taken if taken != NO_CARD else int(v["drawn"])
            allowed = {
                card: left for card, left in after.items() if card != taken and frozenset((drew, card)) not in pairs
            }
            turns += 1
            differ += least(allowed) != eaai_throws(v)
    print(f"{differ} of {turns} throws")
    assert turns > 3000
    assert differ < 0.002 * turns


def turns_of(record: Record) -> Iterator[tuple[np.void, set[frozenset[int]]]]:
    """Yields each throw of a recorded hand: the view, and the pairs that its seat has drawn and thrown before."""
    (hand,) = record.hands
    t = engine.new_tables(record.rules, 1)
    engine.deal(t, decks=[list(hand.deck)], dealers=[hand.dealer])
    pairs: tuple[set[frozenset[int]], set[frozenset[int]]] = set(), set()
    for move in hand.moves:
        if t["phase"][0] == THROW:
            v = observe(t)[0].copy()
            own = pairs[int(t["mover"][0])]
            yield v, own
            if move < KNOCK:
                drew = int(v["taken"]) if v["taken"] != NO_CARD else int(v["drawn"])
                own.add(frozenset((drew, move - DISCARD)))
        engine.step(t, [move])


def test_eaai_simple_lays_each_best_arrangement_as_often() -> None:
    """Twice a run and a set of three through its middle, each as good as the other."""
    knocker = "7S 8S 9S 8H 8D 3C 4C 5C 4H 4D"
    t = after_knock(preset("eaai", knock_limit=30), knocker, "2D 5D 7D 9D 2C AC 6C 9C QC JH", "KD")
    count = 3000
    tables = np.repeat(t, count)
    agent = agents.make("eaai-simple")
    for step in range(5):
        moving = (tables["phase"] == DECLARE).nonzero()[0]
        if moving.size:
            acts = agent.act(observe(tables)[moving], engine.legal(tables)[moving], keys(count, step)[moving])
            actions = np.full(count, engine.NO_ACTION)
            actions[moving] = acts
            engine.step(tables, actions)
    assert (tables["phase"] != DECLARE).all()
    counts = Counter(tuple(sorted(int(meld) for meld in row)) for row in tables["laid"][:, 0])
    hand = to_mask(parse_cards(knocker))
    arrangements = {tuple(sorted((*way, *[0] * (3 - len(way))))) for way in reference.arrangements(hand)}
    deadwood = reference.deadwood(hand)
    best = {way for way in arrangements if reference.points(hand & ~sum(way)) == deadwood}
    assert set(counts) == best
    assert len(best) == 4
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_eaai_simple_goes_on_from_what_others_laid() -> None:
    """From any position of the showdown it plays a legal action, and ends with the least that can still be reached."""
    check_agent(agents.make("eaai-simple"), "eaai", hands=60)
    long = "AS 2S 3S 4S 5S 6S 7S 8S KD KC"
    t = after_knock(preset("eaai", knock_limit=20), long, "4D 5D 7D 9D 2C 4C 6C 8C QC JH", "KH")
    agent = agents.make("eaai-simple")
    while t["phase"][0] == DECLARE:
        engine.step(t, agent.act(observe(t), engine.legal(t), keys(1)))
    assert t["knocked_with"][0] == 20
    assert int(np.bitwise_or.reduce(t["laid"][0, 0])) == to_mask(parse_cards("AS 2S 3S 4S 5S 6S 7S 8S"))
