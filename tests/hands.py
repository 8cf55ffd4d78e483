"""Random hands that hold many melds, whole knocks with layoffs, and random rules, for tests against the reference.

Uniform hands hold few melds that compete for a card, and few layoffs. These generators make them common: few ranks,
few suits, planted melds, and sets that cross runs.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from gin_env import Rules
from tests import reference

# Draws `size` different cards, those most worth having first.
Draw = Callable[[Random, int], list[int]]


def _shuffled(rng: Random, cards: list[int]) -> list[int]:
    return rng.sample(cards, len(cards))


def _first(cards: list[int], rng: Random, size: int) -> list[int]:
    """Returns the first `size` different cards, filled up at random."""
    return list(dict.fromkeys([*cards, *_shuffled(rng, list(reference.DECK))]))[:size]


def uniform(rng: Random, size: int) -> list[int]:
    """Any cards."""
    return rng.sample(reference.DECK, size)


def few_ranks(rng: Random, size: int) -> list[int]:
    """Cards of three to eight neighbouring ranks."""
    span = rng.randint(max(3, -(-size // 4)), 8)
    low = rng.randint(0, 13 - span)
    return rng.sample([card for card in reference.DECK if low <= card % 13 < low + span], size)


def few_suits(rng: Random, size: int) -> list[int]:
    """Cards of one or two suits, and up to two others."""
    suits = rng.sample(range(4), rng.choice([1, 2, 2]) if size < 13 else 2)
    cards = _shuffled(rng, [card for card in reference.DECK if card // 13 in suits])
    return _first(cards[: size - rng.randint(0, 2)], rng, size)


def planted(rng: Random, size: int) -> list[int]:
    """Two to four random melds, which may share cards, then any cards."""
    cards: list[int] = []
    for _ in range(rng.randint(2, 4)):
        cards += reference.cards_of(rng.choice(reference.SETS if rng.random() < 0.5 else reference.RUNS))[:5]
    return _first(cards, rng, size)


def crossing(rng: Random, size: int) -> list[int]:
    """A set or two with runs through the same cards, in two or three suits."""
    rank, suits = rng.randint(0, 12), rng.sample(range(4), 4)
    cards = [13 * suit + rank for suit in suits[: rng.randint(3, 4)]]
    for suit in suits[: rng.randint(2, 3)]:
        low, high = max(rank - rng.randint(0, 3), 0), min(rank + rng.randint(0, 3), 12)
        cards += range(13 * suit + low, 13 * suit + high + 1)
    if rng.random() < 0.5:
        beside = min(rank + 1, 12)
        cards += [13 * suit + beside for suit in suits[:3]]
    return _first(cards, rng, size)


def blocks(rng: Random, size: int) -> list[int]:
    """Three or four neighbouring ranks in three or four suits, which can be laid as sets or as runs."""
    width, suits = rng.randint(3, 4), rng.sample(range(4), rng.randint(3, 4))
    low = rng.randint(0, 13 - width)
    cards = [13 * suit + rank for suit in suits for rank in range(low, low + width)]
    # A card or two out of the block, and others beside it, so that one way opens fewer places than the other.
    cards = _shuffled(rng, cards)[: size - rng.randint(0, 2)]
    beside = [13 * suit + rank for suit in range(4) for rank in (low - 1, low + width) if 0 <= rank <= 12]
    return _first(cards + _shuffled(rng, beside)[: rng.randint(0, 2)], rng, size)


DRAWS: tuple[Draw, ...] = (uniform, few_ranks, few_suits, planted, crossing, blocks)


def hands(seed: int, count: int, size: int) -> list[int]:
    """Returns ``count`` hands of ``size`` cards as ints, from all generators in turn."""
    rng = Random(f"{seed} hands {size}")
    return [reference.mask_of(DRAWS[number % len(DRAWS)](rng, size)) for number in range(count)]


class Knock(NamedTuple):
    """A knock that the defender has to answer."""

    melds: tuple[int, ...]  # the knocker's, one to three
    defender: int  # ten cards
    gin: bool


def _knock(rng: Random, number: int) -> Knock:
    while True:
        hand = reference.mask_of(DRAWS[number % len(DRAWS)](rng, 10))
        # The engine's own choice half the time. Otherwise any arrangement that a player might lay by hand: more
        # deadwood, short runs side by side, sets that are not full.
        melds = reference.best_arrangement(hand)
        if rng.random() < 0.5:
            melds = max(rng.choices(list(reference.arrangements(hand)), k=3), key=len)
        if melds:
            break

    # The defender holds cards near the knocker's melds, so that layoffs chain and own melds compete with them.
    free = [card for card in _shuffled(rng, list(reference.DECK)) if not hand >> card & 1]
    near = []
    for meld in melds:
        ranks = [card % 13 for card in reference.cards_of(meld)]
        suits = {card // 13 for card in reference.cards_of(meld)}
        reach = rng.randint(0, 4)
        near += [c for c in free if c // 13 in suits and min(ranks) - reach <= c % 13 <= max(ranks) + reach]
        near += [c for c in free if min(ranks) == max(ranks) == c % 13]
    cards = {
        "near": near[: rng.randint(2, 10)],
        "rich": DRAWS[rng.randrange(len(DRAWS))](rng, 10),
        "both": near[: rng.randint(1, 4)] + DRAWS[rng.randrange(len(DRAWS))](rng, 10),
    }[rng.choice(["near", "rich", "both"])]
    defender = [card for card in dict.fromkeys(cards + free) if not hand >> card & 1][:10]
    return Knock(melds, reference.mask_of(defender), rng.random() < 0.1)


def knocks(seed: int, count: int) -> list[Knock]:
    """Returns ``count`` knocks, a tenth of them said to be gin."""
    rng = Random(f"{seed} knocks")
    return [_knock(rng, number) for number in range(count)]


@st.composite
def any_rules(draw: st.DrawFn, **fixed: st.SearchStrategy[Any]) -> Rules:
    """Draws rules that can be played: whole packs and small ones, each field at its limits or anywhere between.

    Args:
        draw: Hypothesis's.
        **fixed: Fields, each with the strategy to draw it from instead.
    """

    def between(low: int, high: int, *usual: int) -> st.SearchStrategy[int]:
        return st.one_of(st.sampled_from([low, high, *usual]), st.integers(low, high))

    if draw(st.booleans()):
        ranks, suits, hand_size = 13, 4, draw(st.sampled_from([10, 10, 10, 7, 5]))
    else:
        suits = draw(st.integers(1, 4))
        ranks = draw(st.integers(max(3, 6 // suits), 13))
        hand_size = draw(st.integers(2, min(10, (ranks * suits - 2) // 2)))
    stock = ranks * suits - 2 * hand_size - 1
    layoffs = draw(fixed.pop("layoffs", st.sampled_from(["best", "ascending", "manual", "manual"])))
    oklahoma, rediscard = draw(st.booleans()), draw(st.booleans())
    fields: dict[str, st.SearchStrategy[Any]] = {
        "knock_limit": between(0, 100, 1, 3, 5, 10, 10, 10),
        "double_spades": st.sampled_from(["no", "deadwood", "all"] if oklahoma else ["no"]),
        "gin_bonus": between(0, 1000, 25),
        "big_gin_bonus": st.none() | between(0, 1000, 31),
        "undercut_bonus": between(0, 1000, 25),
        "tie": st.sampled_from(["undercut", "nothing"]),
        "first_dealer": st.sampled_from(["random", 0, 1]),
        "next_dealer": st.sampled_from(["alternate", "winner", "same"]),
        "stock_floor": between(0, min(10, stock - 1), min(2, stock - 1)),
        "wall": st.sampled_from(["dead", "knock"]),
        "draw_cap": between(1, 200, 7, 30),
        "swap_cap": st.sampled_from([None, 1, 2, 5]) if rediscard else st.none(),
        "take_cap": st.sampled_from([None, 1, 2, 5, 50]),
        "knocker_melds": st.sampled_from(["auto", "manual", "manual"]),
        "defender_melds": st.sampled_from(["auto"] if layoffs == "best" else ["auto", "manual"]),
        "target": st.none() | between(1, 1_000_000, 10, 50, 100),
    }
    return Rules(
        name="random",
        ranks=ranks,
        suits=suits,
        hand_size=hand_size,
        oklahoma=oklahoma,
        rediscard=rediscard,
        layoffs=layoffs,
        **{field: draw(fixed.get(field, strategy)) for field, strategy in fields.items()},
    )
