"""Rules as a person reads them: points in plain sentences, whose decision each is, and where the rules come from.

Four presets follow public rule pages, two reproduce another library. Where a page is silent, this project has decided,
and says so. Nothing here is compiled or loads the engine.

    >>> from gin_env.rulebook import describe
    >>> [point.text for point in describe("plus20") if point.title == "undercut"]
    ['A defender with less deadwood than the knocker undercuts: the difference and 20 points for the defender.']
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gin_env.cards import RANKS
from gin_env.rules import DEFAULT_PRESET, PRESETS, Rules, as_rules

Decision = Literal["page", "library", "ours", "yours"]
DECISIONS: Mapping[Decision, str] = {
    "page": "said by the rule page",
    "library": "as the library plays it",
    "ours": "decided by this project",
    "yours": "changed from the preset",
}


@dataclass(frozen=True)
class Point:
    """One point of the rules.

    Attributes:
        title: What it is about, such as "undercut".
        text: What holds, in sentences.
        fields: The fields of `Rules` that it is read from; empty where there is nothing to choose.
        decision: Whose it is, one of `DECISIONS`.
        reason: Why it was decided so, where it is "ours" and there is something to say.
    """

    title: str
    text: str
    fields: tuple[str, ...] = ()
    decision: Decision = "ours"
    reason: str = ""


@dataclass(frozen=True)
class Option:
    """A variant of a preset.

    Attributes:
        meaning: What it changes.
        rules: How to ask for it, as `gin_env.rules.as_rules` reads it.
        decision: "page" or "library" where the source offers it, otherwise "ours".
    """

    meaning: str
    rules: str
    decision: Decision = "page"


@dataclass(frozen=True)
class Source:
    """Where a preset comes from.

    Attributes:
        title: The rule page, or the library and its version.
        kind: "page" or "library".
        game: The game in a few words.
        options: What the source lets people choose.
        differences: What this project does not take over.
    """

    title: str
    kind: Literal["page", "library"]
    game: str
    options: tuple[Option, ...] = ()
    differences: tuple[str, ...] = ()


SOURCES: Mapping[str, Source] = {
    "cardpuzzle": Source(
        "Card & Puzzle (an Italian and a Portuguese page)",
        "page",
        "classic gin with big gin; the default",
        options=(
            Option("the Classic match, to 100", "cardpuzzle"),
            Option("the Quick match, to 50", "cardpuzzle:target=50"),
        ),
    ),
    "luciano": Source(
        "Gin Rummy - Luciano",
        "page",
        "gin without big gin; the winner of a hand deals the next",
        options=(
            Option("any target, such as 250", "luciano:target=250"),
            Option("Oklahoma", "luciano:oklahoma=true"),
            Option("layoffs by hand, then confirmed", "luciano:layoffs=manual"),
        ),
    ),
    "plus20": Source(
        "a short rules page",
        "page",
        "gin without big gin; an undercut pays 20, equal deadwood nothing",
        options=(
            Option("a match to 50", "plus20:target=50"),
            Option("a match to 100", "plus20"),
            Option("a match to 200", "plus20:target=200"),
            Option("Oklahoma, with spades doubled", "plus20:oklahoma=true,double_spades=deadwood"),
            Option("the same, the bonus doubled too", "plus20:oklahoma=true,double_spades=all", "ours"),
        ),
    ),
    "rummyplus": Source(
        "Rummy Plus, first half",
        "page",
        "gin with big gin; equal deadwood scores nothing",
        options=(
            Option("a match of one hand", "rummyplus:target=none"),
            Option("a match to 100", "rummyplus"),
            Option("a match to 200", "rummyplus:target=200"),
            Option("a match to 500", "rummyplus:target=500"),
        ),
    ),
    "openspiel": Source(
        "OpenSpiel 2.0.2, gin_rummy",
        "library",
        "what OpenSpiel plays by default, for comparisons: melds and layoffs by hand, a last turn at the wall",
        options=(
            Option("oklahoma", "openspiel:oklahoma=true", "library"),
            Option("knock_card, such as 7", "openspiel:knock_limit=7", "library"),
            Option("gin_bonus, such as 20", "openspiel:gin_bonus=20", "library"),
            Option("undercut_bonus, such as 10", "openspiel:undercut_bonus=10", "library"),
            Option("num_ranks, num_suits and hand_size", "openspiel:ranks=10,suits=3,hand_size=7", "library"),
        ),
        differences=(
            "There a knock is declared before its card is thrown; here one action names both.",
            "There a third card laid off in the same direction is refused, and after an ace upcard under Oklahoma some "
            "gins are. These are faults and not taken over.",
        ),
    ),
    "eaai": Source(
        "the Java framework of the EAAI 2021 gin rummy challenge",
        "library",
        "the rules of the EAAI 2021 challenge, for comparisons: each side lays its own melds, layoffs are automatic",
        differences=(
            "There an illegal play loses the game; here it is refused.",
            "There the lowest card goes by the suits C H S D; here by S H D C, as everywhere in this project.",
        ),
    ),
}

# What the sources do not say: for each preset the titles of the points, and why they were decided so.
_AS_DEFAULT = "The page does not say; as on Card & Puzzle."
_DEAD = dict.fromkeys(("dead hand", "wall"), _AS_DEFAULT)
_AT_RANDOM = "The page does not say; a draw favours nobody."
_NO_BETTER = "The page calls it an undercut if the defender has less, and does not say what equal deadwood scores."
# No page goes into these.
_EVERYWHERE = {
    "re-discard when knocking": "The page does not say; a knock throws a card as any other turn does.",
    "declaring big gin": "",
    "defender with nothing left": "",
    "laying off": "Breaking up an own meld to lay off more is right where it counts less.",
    "the knocker's melds": "Several arrangements may count the same; this one leaves the fewest layoffs, and is always "
    "the same one.",
    "the defender's melds": "They belong to the layoffs: only both together count least.",
    "what is shown": "",
    "draw cap": "Two players who only take from the discard pile would never come to an end.",
    "one-hand match": "",
}
_BY_HAND = "The page lays off by hand and confirms; the option `layoffs=manual` plays so."
_OURS: Mapping[str, Mapping[str, str]] = {
    "cardpuzzle": _EVERYWHERE,
    "luciano": {
        **_EVERYWHERE,
        **_DEAD,
        "laying off": _BY_HAND,
        "first dealer": _AT_RANDOM,
        "dealer after a dead hand": _AS_DEFAULT,
        "ace": _AS_DEFAULT,
    },
    "plus20": {
        **_EVERYWHERE,
        **_DEAD,
        "first dealer": _AT_RANDOM,
        "next dealer": _AS_DEFAULT,
        "dealer after a dead hand": _AS_DEFAULT,
        "both pass": _AS_DEFAULT,
        "tie": _NO_BETTER,
    },
    "rummyplus": {
        **_EVERYWHERE,
        **_DEAD,
        "first dealer": _AT_RANDOM,
        "next dealer": _AS_DEFAULT,
        "dealer after a dead hand": _AS_DEFAULT,
        "ace": _AS_DEFAULT,
        "offer in every hand": "The page does not say that it is so in every hand.",
        "re-discard": _AS_DEFAULT,
        "tie": _NO_BETTER,
    },
    "openspiel": {
        "what is shown": "There the knocker's cards outside its melds stay hidden.",
        "draw cap": "Never reached: the stock and the take cap allow fewer draws.",
        "match target": "A game there is one hand; matches are this project's.",
        "match end": "A game there is one hand; matches are this project's.",
    },
    "eaai": {
        "what is shown": "",
        "draw cap": _EVERYWHERE["draw cap"],
    },
}


def describe(rules: Rules | str) -> list[Point]:
    """Returns what is played, point by point, in the order of a game.

    A point of a preset is its source's or this project's. What differs from the preset is "yours", and so is what
    rules of another name (house rules) change in the default preset; of these no point is a source's.

    Args:
        rules: Rules, or text that names them (`gin_env.rules.as_rules`).

    Raises:
        ValueError: If the text names no rules.
        OSError: If it names a file that cannot be read.
    """
    rules = as_rules(rules)
    base = PRESETS.get(rules.name)
    source = SOURCES.get(rules.name)
    ours = _OURS.get(rules.name, {})
    points = []
    for point in _points(rules):
        if any(getattr(rules, field) != getattr(base or PRESETS[DEFAULT_PRESET], field) for field in point.fields):
            points.append(replace(point, decision="yours"))
        elif source is None or point.title in ours:
            points.append(replace(point, decision="ours", reason=ours.get(point.title, "")))
        else:
            points.append(replace(point, decision=source.kind))
    return points


def to_json(rules: Rules | str) -> dict[str, Any]:
    """Returns rules, their points and their source as plain values, for programs.

    Raises:
        ValueError: If the text names no rules.
        OSError: If it names a file that cannot be read.
    """
    rules = as_rules(rules)
    source = SOURCES.get(rules.name)
    return {
        "name": rules.name,
        "text": rules.text,
        "fingerprint": rules.fingerprint,
        "fields": rules.to_dict(),
        "points": [asdict(point) for point in describe(rules)],
        "source": None if source is None else asdict(source),
    }


def _points(rules: Rules) -> Iterator[Point]:
    """Yields the points without a decision. Each chapter of the game is a function below."""
    yield from _deal(rules)
    yield from _cards(rules)
    yield from _turns(rules)
    yield from _knocking(rules)
    yield from _scoring(rules)
    yield from _laying(rules)
    yield from _endings(rules)
    yield from _match(rules)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _deal(rules: Rules) -> Iterator[Point]:
    hand, stock = rules.hand_size, rules.deck_size - 2 * rules.hand_size - 1
    pack = f"{rules.deck_size} cards"
    if rules.deck_size < 52:
        pack += f", the {_count(rules.ranks, 'rank')} from the ace up in {_count(rules.suits, 'suit')}"
    yield Point(
        "pack and deal",
        f"{pack}. {hand} to each player, one at a time, the non-dealer first. The next card is the upcard and begins "
        f"the discard pile, the other {stock} are the stock.",
        ("ranks", "suits", "hand_size"),
    )
    first = "Drawn at random." if rules.first_dealer == "random" else f"Seat {rules.first_dealer}, in every match."
    yield Point("first dealer", first, ("first_dealer",))
    following = {
        "alternate": "The other player, after every hand that was played to an end.",
        "winner": "The winner of the hand; after a tie the same player.",
        "same": "The same player in every hand.",
    }
    yield Point("next dealer", following[rules.next_dealer], ("next_dealer",))
    yield Point("dealer after a dead hand", "The same player again.")


def _cards(rules: Rules) -> Iterator[Point]:
    below, top = RANKS[rules.ranks - 2].replace("T", "10"), RANKS[rules.ranks - 1].replace("T", "10")
    yield Point("ace", f"Low only: A-2-3 is a run, {below}-{top}-A is none, and no run goes on from {top} to A.")
    sets = {4: "A set is 3 or 4 cards of a rank, a run", 3: "A set is the 3 cards of a rank, a run"}
    melds = sets.get(rules.suits, "There are too few suits for sets. A run is")
    yield Point("melds", f"{melds} 3 or more in a row of a suit. A card is in one meld at most.")
    yield Point(
        "card points",
        "Ace 1, 2 to 10 their face value, jack, queen and king 10. Deadwood is the points of the cards in no meld.",
    )


def _turns(rules: Rules) -> Iterator[Point]:
    yield Point(
        "upcard offer",
        "The non-dealer takes the upcard or passes, then the dealer. Taking it is that player's draw.",
    )
    yield Point("offer in every hand", "Every hand begins with the upcard offer.")
    yield Point("both pass", "The non-dealer must draw from the stock.")
    yield Point("drawing", "The top card of the stock or the top discard.")
    if rules.rediscard:
        yield Point("re-discard", "Any card may be thrown, also the one just taken from the pile.", ("rediscard",))
    else:
        yield Point(
            "re-discard", "The card just taken from the pile may not be thrown in the same turn.", ("rediscard",)
        )
        yield Point("re-discard when knocking", "Nor may it be the card that is thrown with a knock or gin.")


def _knocking(rules: Rules) -> Iterator[Point]:
    yield Point(
        "knock",
        "A player who has drawn may knock if throwing a card leaves deadwood within the limit: from the first turn on, "
        "and never forced.",
    )
    limit = "The upcard sets it: see Oklahoma." if rules.oklahoma else f"{_count(rules.knock_limit, 'point')}."
    yield Point("limit", limit, ("knock_limit", "oklahoma"))
    if not rules.oklahoma:
        yield Point("Oklahoma", "Not played.", ("oklahoma", "double_spades"))
        return
    doubles = {
        "no": "No suit doubles.",
        "deadwood": "A spade doubles the difference (against gin the defender's deadwood), not the bonus, the limit or "
        "the comparison.",
        "all": "A spade doubles the difference (against gin the defender's deadwood) and the bonus, not the limit or "
        "the comparison.",
    }
    yield Point(
        "Oklahoma",
        "The upcard sets the limit, for the whole hand and visible to both: an ace 0 (gin only), 2 to 9 the rank, 10 "
        f"and court cards 10. {doubles[rules.double_spades]}",
        ("oklahoma", "double_spades"),
    )


def _scoring(rules: Rules) -> Iterator[Point]:
    hand = rules.hand_size
    yield Point(
        "gin",
        f"All {hand} cards in melds after the discard: the defender's deadwood and {_count(rules.gin_bonus, 'point')}.",
        ("gin_bonus",),
    )
    if rules.big_gin_bonus is None:
        yield Point("big gin", "Does not exist.", ("big_gin_bonus",))
    else:
        yield Point(
            "big gin",
            f"All {hand + 1} cards in melds and none thrown: the defender's deadwood and "
            f"{_count(rules.big_gin_bonus, 'point')}.",
            ("big_gin_bonus",),
        )
        yield Point(
            "declaring big gin",
            "It is declared; gin and plain discards stay legal. The last card may come from the stock, the pile or the "
            "offer.",
        )
    yield Point("knock won", "A knocker with less deadwood than the defender wins the difference.")
    yield Point(
        "undercut",
        "A defender with less deadwood than the knocker undercuts: the difference and "
        f"{_count(rules.undercut_bonus, 'point')} for the defender.",
        ("undercut_bonus",),
    )
    if rules.tie == "undercut":
        text = f"Equal deadwood is an undercut: {_count(rules.undercut_bonus, 'point')} for the defender."
        yield Point("tie", text, ("tie", "undercut_bonus"))
    else:
        yield Point("tie", "At equal deadwood nobody scores; the hand counts as played.", ("tie",))
    yield Point("defender with nothing left", "A defender with no deadwood after layoffs has undercut; it is not gin.")


def _laying(rules: Rules) -> Iterator[Point]:
    gin = "gin" if rules.big_gin_bonus is None else "gin or big gin"
    yield Point(
        "layoffs",
        f"Only the defender lays off, on the knocker's melds, never against {gin}. They chain: on 4-5-6 the 7, then "
        "the 8.",
    )
    layoffs = {
        "best": "The engine chooses own melds and layoffs together, for the least deadwood.",
        "ascending": "The engine goes through the cards left beside the own melds: the lowest that fits goes on the "
        "first meld that takes it, until none fits.",
        "manual": "The defender lays off card by card, on a meld of its choice, and may stop at any point.",
    }
    yield Point("laying off", layoffs[rules.layoffs], ("layoffs",))
    if rules.knocker_melds == "manual":
        knocker = (
            "The knocker lays them one by one, any that leave no more than the limit; a run of more than five cards is "
            "laid as several."
        )
    else:
        knocker = (
            "The engine lays them: least deadwood, then the fewest places for a layoff, then the fewest points on such "
            "cards, then sets before runs, then card order. It does not look at the defender's hand."
        )
    yield Point("the knocker's melds", knocker, ("knocker_melds",))
    when = "after" if rules.layoffs == "manual" else "before"
    if rules.defender_melds == "manual":
        defender = f"The defender lays them one by one, {when} the layoffs, and may stop at any point."
    elif rules.layoffs == "best":
        defender = "The engine lays them, chosen together with the layoffs."
    else:
        defender = f"The engine lays those that leave the least deadwood, {when} the layoffs."
    yield Point("the defender's melds", defender, ("defender_melds", "layoffs"))
    yield Point(
        "what is shown",
        "During layoffs the knocker's cards are public and the defender's are not. Both are when the hand is over.",
    )


def _endings(rules: Rules) -> Iterator[Point]:
    floor = _count(rules.stock_floor, "card")
    if rules.wall == "dead":
        dead = f"A discard without a knock, with {floor} left in the stock, ends the hand. Nobody scores."
        wall = "No last turn: the hand ends at once."
    else:
        dead = f"A discard without a knock, with {floor} left in the stock, is the wall: nobody draws from it any more."
        wall = (
            "The next player takes the top discard, if that allows a knock, and knocks; or passes, and the hand is "
            "dead: nobody scores."
        )
    yield Point("dead hand", dead, ("stock_floor", "wall"))
    yield Point("wall", wall, ("wall",))
    yield Point(
        "draw cap",
        f"A discard without a knock, after {_count(rules.draw_cap, 'draw')} by both players together, truncates the "
        "hand: no score, the same dealer again. It is no dead hand.",
        ("draw_cap",),
    )
    base = PRESETS.get(rules.name, PRESETS[DEFAULT_PRESET])
    for title, field, counted in (
        ("swap cap", "swap_cap", "Turns in a row that take the top discard and throw it back"),
        ("take cap", "take_cap", "Cards taken from the discard pile, the offer apart"),
    ):
        cap = getattr(rules, field)
        if cap is not None:
            yield Point(title, f"{counted}: at {cap} the hand is dead.", (field,))
        elif getattr(base, field) is not None:
            yield Point(title, "No such rule.", (field,))


def _match(rules: Rules) -> Iterator[Point]:
    if rules.target is None:
        yield Point("match target", "None: the match is one hand.", ("target",))
        yield Point(
            "match end", "The winner of the hand wins the match. There is no game, box or shutout bonus.", ("target",)
        )
        yield Point(
            "one-hand match",
            "A tie is a draw. A hand that was not played to an end is dealt again by the same player.",
        )
        return
    yield Point("match target", f"{_count(rules.target, 'point')}.", ("target",))
    yield Point("match end", "The first to reach the target wins. There is no game, box or shutout bonus.")
