"""A slow, readable reference for melds, knocks and layoffs, in plain Python.

It shares no code with `gin_env` and takes no short cut that could change an answer: every question is settled by
looking at all arrangements of the cards, and every layoff by trying each card on each meld in each order.

A card is ``suit * 13 + rank`` with the suits in the order S H D C and ranks from 0 (ace) to 12 (king). A set of
cards, and so a hand or a meld, is an int with bit ``card`` set for each of its cards. An arrangement is a tuple of
disjoint melds, sets first and then runs, each group ascending; the cards in none of them are loose.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

DECK = range(52)
FULL_PACK = (1 << 52) - 1
POINTS = [min(card % 13 + 1, 10) for card in DECK]


def mask_of(cards: Iterable[int]) -> int:
    """Returns a set of cards as an int."""
    return sum(1 << card for card in set(cards))


def cards_of(mask: int) -> list[int]:
    """Returns the cards of a set, ascending."""
    cards = []
    while mask:
        lowest = mask & -mask
        cards.append(lowest.bit_length() - 1)
        mask ^= lowest
    return cards


def points(mask: int) -> int:
    """Returns the points of a set of cards."""
    return sum([POINTS[card] for card in cards_of(mask)])


# Every meld there is: three or four of a rank; three or more in sequence in a suit, up to all thirteen, for a run on
# the table grows by layoffs. The ace is low only.
SETS = sorted(
    mask_of(13 * suit + rank for suit in suits)
    for rank in range(13)
    for size in (3, 4)
    for suits in combinations(range(4), size)
)
RUNS = sorted(
    mask_of(range(13 * suit + low, 13 * suit + high + 1))
    for suit in range(4)
    for low in range(13)
    for high in range(low + 2, 13)
)
MELDS = SETS + RUNS
IS_SET = {meld: meld in SETS for meld in MELDS}
MELD_POINTS = {meld: points(meld) for meld in MELDS}

# The cards that can be added to a meld: those that make a meld together with it.
FITTING = {
    meld: mask_of(card for card in DECK if not meld >> card & 1 and meld | 1 << card in IS_SET) for meld in MELDS
}


def arrangements(hand: int) -> Iterator[tuple[int, ...]]:
    """Yields every arrangement of a hand, each once, those that leave melds unmade included."""

    def choose(chosen: tuple[int, ...], melds: list[int]) -> Iterator[tuple[int, ...]]:
        yield chosen
        for place, meld in enumerate(melds):
            later = [other for other in melds[place + 1 :] if not other & meld]
            yield from choose((*chosen, meld), later)

    yield from choose((), [meld for meld in MELDS if meld & hand == meld])


def loose_cards(hand: int, melds: Iterable[int]) -> int:
    """Returns the cards of a hand that are in none of the melds."""
    for meld in melds:
        hand &= ~meld
    return hand


def deadwood(hand: int) -> int:
    """Returns the least points that an arrangement of the hand leaves loose."""
    return points(hand) - max(sum(MELD_POINTS[meld] for meld in melds) for melds in arrangements(hand))


def deadwood_after(hand: int) -> dict[int, int]:
    """Returns the least deadwood left after discarding each card of the hand.

    The arrangements of the hand without a card are those of the whole hand in which this card is loose.
    """
    least: dict[int, int] = {}
    for melds in arrangements(hand):
        loose = loose_cards(hand, melds)
        left = points(loose)
        for card in cards_of(loose):
            least[card] = min(left - POINTS[card], least.get(card, left))
    return least


def knock_discards(hand: int, limit: int = 10) -> dict[int, int]:
    """Returns the discards that leave at most ``limit`` points, each with the deadwood that it leaves."""
    return {card: left for card, left in deadwood_after(hand).items() if left <= limit}


def has_touching_runs(melds: Iterable[int]) -> bool:
    """Says whether two runs of one suit touch, so that they could be laid as one."""
    runs = [meld for meld in melds if not IS_SET[meld]]
    return any(first | second in IS_SET for first, second in combinations(runs, 2))


def open_places(hand: int, melds: Iterable[int], pack: int = FULL_PACK) -> list[tuple[int, int]]:
    """Returns the pairs (meld, card) such that the card of the pack is not in the hand and fits the meld."""
    return [(meld, card) for meld in melds for card in cards_of(FITTING[meld] & pack & ~hand)]


def best_arrangement(hand: int, pack: int = FULL_PACK) -> tuple[int, ...]:
    """Returns how the knocker lays the hand when nobody says otherwise.

    Touching runs are laid as one. In this order: least deadwood, fewest open places, least points over those places,
    most sets, and then the smallest melds, compared in the order in which they are laid.
    """

    def rank(melds: tuple[int, ...]) -> tuple[int, int, int, int, tuple[int, ...]]:
        places = open_places(hand, melds, pack)
        return (
            points(loose_cards(hand, melds)),
            len(places),
            sum(POINTS[card] for _, card in places),
            -sum(IS_SET[meld] for meld in melds),
            melds,
        )

    return min((melds for melds in arrangements(hand) if not has_touching_runs(melds)), key=rank)


class LaidOff(NamedTuple):
    """What can be laid off: as many points as possible, and the fewest cards that are worth so many."""

    points: int
    cards: int


def most_laid_off(loose: int, table: tuple[int, ...], known: dict[tuple[int, tuple[int, ...]], LaidOff]) -> LaidOff:
    """Returns the most that loose cards can lay off on the melds of a table.

    Args:
        loose: The cards that may be laid off.
        table: The melds on the table.
        known: Answers already found, by ``loose`` and ``table``.
    """
    key = (loose, table)
    if key not in known:
        options = [LaidOff(0, 0)]
        for place, meld in enumerate(table):
            for card in cards_of(FITTING[meld] & loose):
                grown = (*table[:place], meld | 1 << card, *table[place + 1 :])
                more = most_laid_off(loose & ~(1 << card), grown, known)
                options.append(LaidOff(POINTS[card] + more.points, 1 + more.cards))
        known[key] = max(options, key=lambda option: (option.points, -option.cards))
    return known[key]


class Defence(NamedTuple):
    """A defence with the least deadwood and, among those, the fewest layoffs."""

    deadwood: int  # points left
    layoffs: int  # cards
    melds: tuple[int, ...]  # the defender's own


def defend(hand: int, table: Iterable[int], gin: bool = False) -> Defence:
    """Returns the best defence, own melds and layoffs chosen together; against gin there are no layoffs."""
    table = () if gin else tuple(table)
    known: dict[tuple[int, tuple[int, ...]], LaidOff] = {}
    options = []
    for melds in arrangements(hand):
        loose = loose_cards(hand, melds)
        laid = most_laid_off(loose, table, known)
        options.append(Defence(points(loose) - laid.points, laid.cards, melds))
    return min(options)


def can_lay_off(cards: int, meld: int) -> bool:
    """Says whether all these cards can be added to a meld one by one, in some order."""
    return cards == 0 or any(
        can_lay_off(cards & ~(1 << card), meld | 1 << card) for card in cards_of(FITTING[meld] & cards)
    )
