"""Melds, knock discards, arrangements and defences against the reference, and what must hold of any of them."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gin_env import melds
from gin_env.cards import CARD_POINTS, NUM_CARDS, cards_text, from_mask, parse_cards, to_mask
from tests import reference
from tests.hands import hands, knocks

SAMPLE = 4_000
LARGE_SAMPLE = int(os.environ.get("GINRUMMY_HANDS", "100000"))

# The small sample belongs to every run of the tests, the large one to `pytest -m slow`.
samples = pytest.mark.parametrize(
    ("seed", "count"),
    [pytest.param(1, SAMPLE, id="small"), pytest.param(2, LARGE_SAMPLE, id="large", marks=pytest.mark.slow)],
)


def masks(values: Sequence[int]) -> np.ndarray:
    """Returns hands as the library takes them, (N,) uint64."""
    return np.array(values, dtype=np.uint64)


def laid(values: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns melds as the library takes them, (N, 3) uint64, 0 where unused."""
    out = np.zeros((len(values), 3), dtype=np.uint64)
    for row, of_hand in zip(out, values, strict=True):
        row[: len(of_hand)] = of_hand
    return out


def in_use(row: np.ndarray) -> list[int]:
    """Returns the melds of one hand without the unused places."""
    return [int(meld) for meld in row if meld]


def texts(cards: Sequence[int] | np.ndarray) -> list[str]:
    return [cards_text(int(mask)) for mask in cards if mask]


def assert_rows_agree(given_hands: Sequence[int], got: Sequence[Any], expected: Sequence[Any], show: Callable) -> None:
    """Compares an answer per hand, and names the first hands on which the library and the reference differ."""
    assert len(got) == len(expected) == len(given_hands)
    wrong = [i for i in range(len(expected)) if got[i] != expected[i]]
    lines = [f"{cards_text(given_hands[i])}: got {show(got[i])}, reference {show(expected[i])}" for i in wrong[:5]]
    assert not wrong, f"{len(wrong)} of {len(expected)} hands differ\n" + "\n".join(lines)


def assert_valid_melds(hand: int, row: np.ndarray) -> None:
    """Asserts that melds are disjoint, made of the hand's cards, and packed to the front, sets before runs."""
    used = in_use(row)
    assert used == [int(meld) for meld in row[: len(used)]], "an unused place before a used one"
    assert all(meld in reference.IS_SET for meld in used), texts(row)
    assert sum(meld.bit_count() for meld in used) == to_mask(from_mask(sum(used))).bit_count(), "a card in two melds"
    assert sum(used) & ~hand == 0, "a meld of cards that are not in the hand"
    assert used == sorted(used, key=lambda meld: (not reference.IS_SET[meld], meld))


def assert_valid_defence(hand: int, table: Sequence[int], gin: bool, points: int, row: Any, layoffs: Any) -> None:
    """Asserts that a defence can be played and leaves the deadwood it says."""
    assert_valid_melds(hand, row)
    own, off = sum(in_use(row)), sum(in_use(layoffs))
    assert sum(int(cards).bit_count() for cards in layoffs) == off.bit_count(), "a card laid off twice"
    assert off & ~hand == 0, "a layoff that is not in the hand"
    assert off & own == 0, "a card melded and laid off"
    assert not (gin and off), "a layoff against gin"
    for place, cards in enumerate(layoffs):
        if cards:
            assert reference.can_lay_off(int(cards), int(table[place])), (texts(table), texts(layoffs))
    assert points == reference.points(hand & ~own & ~off)


# ------------------------------------------------------------------------------------------- the library and reference


@samples
@pytest.mark.parametrize("size", [10, 11])
def test_deadwood_agrees_with_reference(seed: int, count: int, size: int) -> None:
    sample = hands(seed, count, size)
    got = melds.deadwood(masks(sample))
    assert got.dtype == np.int16
    assert_rows_agree(sample, got.tolist(), [reference.deadwood(hand) for hand in sample], str)


@samples
def test_discards_agree_with_reference(seed: int, count: int) -> None:
    sample = hands(seed, count, 11)
    got = melds.deadwood_after(masks(sample))
    assert got.dtype == np.int16
    assert got.shape == (count, NUM_CARDS)
    held = [{card: int(left) for card, left in enumerate(row) if left >= 0} for row in got]
    expected = [reference.deadwood_after(hand) for hand in sample]
    assert_rows_agree(sample, held, expected, lambda answer: {cards_text([c]): left for c, left in answer.items()})


@samples
@pytest.mark.parametrize("size", [10, 11])
def test_arrangement_agrees_with_reference(seed: int, count: int, size: int) -> None:
    sample = hands(seed, count, size)
    got = melds.arrange(masks(sample))
    assert got.melds.dtype == np.uint64
    expected = [reference.best_arrangement(hand) for hand in sample]
    assert_rows_agree(sample, [tuple(row) for row in got.melds.tolist()], [_padded(row) for row in expected], texts)
    left = [reference.points(reference.loose_cards(hand, row)) for hand, row in zip(sample, expected, strict=True)]
    assert got.deadwood.tolist() == left


@samples
def test_defence_agrees_with_reference(seed: int, count: int) -> None:
    sample = knocks(seed, count)
    table = laid([knock.melds for knock in sample])
    got = melds.defend(
        masks([knock.defender for knock in sample]), table, np.array([knock.gin for knock in sample], dtype=bool)
    )
    # Least deadwood, and then the fewest cards laid off. Which ones may differ.
    expected = [reference.defend(knock.defender, knock.melds, knock.gin)[:2] for knock in sample]
    num_laid = np.bitwise_count(got.layoffs).sum(axis=1).tolist()
    found = list(zip(got.deadwood.tolist(), num_laid, strict=True))
    assert_rows_agree([knock.defender for knock in sample], found, expected, str)
    for i, knock in enumerate(sample):
        assert_valid_defence(knock.defender, table[i], knock.gin, found[i][0], got.melds[i], got.layoffs[i])


def test_arrangement_in_a_small_pack() -> None:
    """A place for a card that is not in the pack is no place."""
    pack = reference.mask_of(card for card in reference.DECK if card % 13 < 9)
    sample = [hand & pack for hand in hands(3, SAMPLE, 11)]
    got = melds.arrange(masks(sample), pack=pack)
    expected = [_padded(reference.best_arrangement(hand, pack)) for hand in sample]
    assert_rows_agree(sample, [tuple(row) for row in got.melds.tolist()], expected, texts)


def _padded(row: Sequence[int]) -> tuple[int, ...]:
    return (*row, *[0] * (3 - len(row)))


# ------------------------------------------------------------------------------------------------- the reference itself


def test_reference_discards_are_the_deadwood_of_the_other_cards() -> None:
    """The reference answers this from the arrangements of the whole hand; the plain definition must agree."""
    for hand in hands(4, 500, 11):
        plain = {card: reference.deadwood(hand & ~(1 << card)) for card in reference.cards_of(hand)}
        assert reference.deadwood_after(hand) == plain
        assert reference.knock_discards(hand) == {card: left for card, left in plain.items() if left <= 10}


def test_reference_counts_melds_and_arrangements() -> None:
    """Numbers worked out by hand."""
    assert len(reference.SETS) == 13 * (4 + 1)
    assert len(reference.RUNS) == 4 * sum(range(1, 12))  # by length, 11 of three down to one of thirteen

    def count(text: str) -> int:
        return len(list(reference.arrangements(to_mask(parse_cards(text)))))

    assert count("4S 6S 8S") == 1  # all loose
    assert count("4S 5S 6S 7S") == 1 + 2 + 1  # loose, a run of three twice, the run of four
    assert count("7S 7H 7D 7C") == 1 + 4 + 1
    assert count("4S 5S 6S 7S 8S 9S") == 1 + (4 + 3 + 2 + 1) + 1  # and two runs of three
    assert count("7S 7H 7D 8D 9D") == 1 + 1 + 1


def test_samples_hold_what_they_are_for() -> None:
    """The generators make the hard cases common enough to be tested."""
    ties = touching = joint = 0
    for hand in hands(5, 1000, 10):
        left = [
            reference.points(reference.loose_cards(hand, row))
            for row in reference.arrangements(hand)
            if not reference.has_touching_runs(row)
        ]
        ties += left.count(min(left)) > 1
    for knock in knocks(5, 1000):
        touching += reference.has_touching_runs(knock.melds)
        alone = reference.deadwood(knock.defender)
        after_own = min(
            alone - reference.most_laid_off(reference.loose_cards(knock.defender, row), knock.melds, {}).points
            for row in reference.arrangements(knock.defender)
            if reference.points(reference.loose_cards(knock.defender, row)) == alone
        )
        joint += not knock.gin and reference.defend(knock.defender, knock.melds).deadwood < after_own
    assert ties >= 30, "arrangements between which the tie-break decides"
    assert touching >= 5, "knocks with two runs that touch"
    assert joint >= 5, "defences in which breaking an own meld is right"


# --------------------------------------------------------------------------------------------------------- any hand

# The first example compiles the kernels, which no deadline should count.
properties = settings(max_examples=300, deadline=None)


@st.composite
def dense_hands(draw: st.DrawFn, min_size: int = 0, max_size: int = 11, apart_from: int = 0) -> int:
    """Hands from few ranks or suits, where melds are many."""
    ranks = draw(st.sampled_from([range(13), range(5), range(4, 9), range(8, 13)]))
    suits = draw(st.sampled_from([(0, 1, 2, 3), (0, 1), (1, 2, 3), (3,)]))
    pool = [13 * suit + rank for suit in suits for rank in ranks]
    pool = [card for card in pool if not apart_from >> card & 1]
    if len(pool) < max_size:
        pool = [card for card in reference.DECK if not apart_from >> card & 1]
    cards = st.lists(st.sampled_from(pool), min_size=min_size, max_size=max_size, unique=True)
    return reference.mask_of(draw(cards))


@st.composite
def dense_knocks(draw: st.DrawFn) -> tuple[tuple[int, ...], int]:
    """A knocker's melds, laid in any way, and the defender's hand."""
    knocker = draw(dense_hands(10, 10))
    table = draw(st.sampled_from(list(reference.arrangements(knocker))))
    return table, draw(dense_hands(10, 10, apart_from=knocker))


def one_deadwood(hand: int) -> int:
    return int(melds.deadwood(masks([hand]))[0])


def one_defence(hand: int, table: Sequence[int], gin: bool = False) -> tuple[int, np.ndarray, np.ndarray]:
    got = melds.defend(masks([hand]), laid([table]), np.array([gin]))
    return int(got.deadwood[0]), got.melds[0], got.layoffs[0]


@properties
@given(dense_hands())
def test_deadwood_and_melds_make_the_hand(hand: int) -> None:
    got = melds.arrange(masks([hand]))
    assert_valid_melds(hand, got.melds[0])
    assert not reference.has_touching_runs(in_use(got.melds[0]))
    melded = int(CARD_POINTS[from_mask(sum(in_use(got.melds[0])))].sum())
    assert int(got.deadwood[0]) + melded == int(CARD_POINTS[from_mask(hand)].sum())
    assert int(got.deadwood[0]) == one_deadwood(hand)


@properties
@given(dense_hands(min_size=1))
def test_discards(hand: int) -> None:
    after = melds.deadwood_after(masks([hand]))[0]
    before = one_deadwood(hand)
    for card in range(NUM_CARDS):
        if hand >> card & 1:
            assert after[card] == one_deadwood(hand & ~(1 << card))
            # A card saves at most its own points, thrown or melded.
            assert after[card] >= before - CARD_POINTS[card]
        else:
            assert after[card] == -1


@properties
@given(dense_knocks(), st.booleans())
def test_defence_can_be_played(knock: tuple[tuple[int, ...], int], gin: bool) -> None:
    table, hand = knock
    points, row, layoffs = one_defence(hand, table, gin)
    assert_valid_defence(hand, laid([table])[0], gin, points, row, layoffs)
    assert points == one_deadwood(hand) if gin or not table else points <= one_deadwood(hand)
    # Fewer melds on the table never help the defender.
    assert points <= one_defence(hand, table[1:], gin)[0]


@properties
@given(dense_knocks(), st.permutations(range(4)))
def test_suits_are_alike(knock: tuple[tuple[int, ...], int], suits: list[int]) -> None:
    def renamed(mask: int) -> int:
        return reference.mask_of(13 * suits[card // 13] + card % 13 for card in from_mask(mask))

    table, hand = knock
    other = renamed(hand)
    assert one_deadwood(other) == one_deadwood(hand)
    after = melds.deadwood_after(masks([hand, other]))
    for card in from_mask(hand):
        assert after[0, card] == after[1, 13 * suits[card // 13] + card % 13]
    assert one_defence(other, [renamed(meld) for meld in table])[0] == one_defence(hand, table)[0]
    # Which melds are laid may depend on the names of the suits, but not how many places they open, nor their points.
    places = [
        sorted(card % 13 for _, card in reference.open_places(cards, in_use(row)))
        for cards, row in zip((hand, other), melds.arrange(masks([hand, other])).melds, strict=True)
    ]
    assert len(places[0]) == len(places[1])
    assert sum(CARD_POINTS[places[0]]) == sum(CARD_POINTS[places[1]])


@properties
@given(st.lists(dense_hands(), min_size=1, max_size=6))
def test_a_batch_is_its_rows(batch: list[int]) -> None:
    together = melds.arrange(masks(batch))
    alone = [melds.arrange(masks([hand])) for hand in batch]
    assert together.deadwood.tolist() == [int(row.deadwood[0]) for row in alone]
    assert together.melds.tolist() == [row.melds[0].tolist() for row in alone]


# ----------------------------------------------------------------------------------------------------------- the edges


def test_no_hands() -> None:
    none = masks([])
    assert melds.deadwood(none).shape == (0,)
    assert melds.deadwood_after(none).shape == (0, NUM_CARDS)
    assert melds.arrange(none).melds.shape == (0, 3)
    assert melds.defend(none, laid([]), np.zeros(0, dtype=bool)).layoffs.shape == (0, 3)


def test_no_cards() -> None:
    assert one_deadwood(0) == 0
    assert (melds.deadwood_after(masks([0])) == -1).all()
    assert not melds.arrange(masks([0])).melds.any()
    assert one_defence(0, [to_mask(parse_cards("4S 5S 6S"))])[0] == 0


def test_inputs_are_left_as_they_were() -> None:
    hand, table, gin = masks([2**20 - 2**10]), laid([reference.RUNS[:3]]), np.array([False])
    before = hand.copy(), table.copy(), gin.copy()
    melds.deadwood(hand)
    melds.deadwood_after(hand)
    melds.arrange(hand)
    melds.defend(hand, table, gin)
    for now, then in zip((hand, table, gin), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("function", [melds.deadwood, melds.deadwood_after, melds.arrange])
def test_bad_hands_are_refused(function: Callable) -> None:
    with pytest.raises(ValueError, match="12 cards"):
        function(masks([2**12 - 1]))
    with pytest.raises(ValueError, match="shape"):
        function(masks([1]).reshape(1, 1))


def test_bad_defences_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        melds.defend(masks([1, 2]), laid([[]]), np.zeros(2, dtype=bool))
    with pytest.raises(ValueError, match="do not fit"):
        melds.defend(masks([1, 2]), laid([[], []]), np.zeros(1, dtype=bool))


@pytest.mark.parametrize(
    ("knocker", "defender", "left"),
    [
        # Between two runs a pair of cards goes on either, from both sides.
        ("3S 4S 5S | 8S 9S TS", "6S 7S KH", 10),
        # The knocker laid one run as two.
        ("4S 5S 6S | 7S 8S 9S", "3S TS JS KH", 10),
        # Four cards that continue a run, laid off or melded.
        ("5S 6S 7S", "8S 9S TS JS KH", 10),
        # A card that fits a set and a run belongs where it leaves the way open for the next.
        ("5S 6S 7S | 8H 8D 8C", "8S 9S KH", 10),
        # The fourth of a set is laid off, though it is the end of one's own run, when the run can do without.
        ("7H 7D 7C", "4S 5S 6S 7S KH", 10),
        # A set of three is broken: the knocker's runs take two of its cards, and the third completes an own run.
        ("4S 5S 6S | 4H 5H 6H", "7S 7H 7D 8D 9D 2C", 2),
        # Nothing below an ace or above a king, and an ace is no king's neighbour.
        ("JS QS KS | AH 2H 3H", "AS KH", 11),
    ],
)
def test_defences_worked_out_by_hand(knocker: str, defender: str, left: int) -> None:
    table = [to_mask(parse_cards(meld)) for meld in knocker.split("|")]
    hand = to_mask(parse_cards(defender))
    points, row, layoffs = one_defence(hand, table)
    assert points == left
    assert_valid_defence(hand, laid([table])[0], False, points, row, layoffs)


@pytest.mark.parametrize(
    ("hand", "expected"),
    [
        # Equal deadwood: three sets open three places, three runs six.
        ("9S TS JS QH 9D TD JD 9C TC JC", "9S 9D 9C | TS TD TC | JS JD JC"),
        # Touching runs are one meld.
        ("4S 5S 6S 7S 8S 9S KH KD QC 2C", "4S 5S 6S 7S 8S 9S"),
        # A run from the ace opens one place.
        ("AS 2S 3S KH QD 9C 7H 5D 5C TH", "AS 2S 3S"),
    ],
)
def test_arrangements_worked_out_by_hand(hand: str, expected: str) -> None:
    got = melds.arrange(masks([to_mask(parse_cards(hand))])).melds[0]
    assert sorted(in_use(got)) == sorted(to_mask(parse_cards(meld)) for meld in expected.split("|"))
