"""OpenSpiel's gin rummy and its bots: our players at its game, its bots at our tables.

    >>> import pyspiel, agents
    >>> from gin_env.adapters.openspiel import AgentBot, OpenSpielAgent
    >>> bot = AgentBot(agents.make("greedy"))  # a pyspiel.Bot, for either player
    >>> agent = OpenSpielAgent()  # OpenSpiel's simple bot, for `agents.match.play_match` under the rules `openspiel`

OpenSpiel writes a hand down differently. Its suits go s c d h; its knock is two actions, the word and the discard, and
so is a knock at the wall, which the word takes the upcard for; its layoff names no meld. Player 0 is the seat that does
not deal. Everything else is one to one, in `CARD` and `THEIRS`.
"""

import dataclasses
import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gin_env import engine
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
    PASS,
    TAKE,
    action_name,
)
from gin_env.cards import NO_CARD, NUM_CARDS, NUM_RANKS, SUITS, from_mask, to_mask
from gin_env.rules import Rules, preset
from gin_env.showdown import fitting
from gin_env.tables import (
    DECLARE,
    DEFEND,
    LAY_OFF,
    OFFER_DEALER,
    PHASES,
    THROW,
    WALL,
    WALL_THROW,
)
from gin_env.vector import Opponent
from gin_env.view import DEALT, OPPONENT, OWN, View, observe

try:
    import pyspiel
except ImportError as error:
    raise ImportError(
        f'gin_env.adapters.openspiel needs OpenSpiel: pip install "gin-env[peers]" ({error})', name=error.name
    ) from error

# Their actions. Below the first a card, to be thrown or laid off; from LAY on a meld.
TAKE_UPCARD, DRAW_STOCK, STOP, SAY_KNOCK, LAY, NUM_THEIRS = 52, 53, 54, 55, 56, 241

# (52,): their number of each of our cards, and ours of each of theirs.
CARD = np.array(["SCDH".index(SUITS[card // NUM_RANKS]) * NUM_RANKS + card % NUM_RANKS for card in range(NUM_CARDS)])
OUR_CARD = np.argsort(CARD)


def their_meld(meld: int) -> int:
    """Returns their number of a meld of `gin_env.actions.MELDS`.

    Sets by rank and missing suit, the set of four last, then runs by length, suit and lowest rank.
    """
    cards = sorted(int(CARD[card]) for card in from_mask(meld))
    suit, rank = divmod(cards[0], NUM_RANKS)
    if cards[-1] // NUM_RANKS != suit:
        missing = {0, 1, 2, 3} - {card // NUM_RANKS for card in cards}
        return 5 * rank + (missing.pop() if missing else 4)
    first = {3: 65, 4: 109, 5: 149}[len(cards)]
    return first + suit * (NUM_RANKS + 1 - len(cards)) + rank


def _theirs() -> np.ndarray:
    theirs = np.full(NUM_MANUAL_ACTIONS, -1)
    theirs[[PASS, DRAW, TAKE]] = STOP, DRAW_STOCK, TAKE_UPCARD
    theirs[DISCARD:KNOCK] = CARD
    theirs[KNOCK:BIG_GIN] = SAY_KNOCK
    theirs[MELD:LAYOFF] = [LAY + their_meld(int(meld)) for meld in MELDS]
    theirs[LAYOFF:] = np.tile(CARD, MAX_MELDS)
    return theirs


# (449,): the action of theirs that each of ours is, the first of two for a knock; -1 for big gin, which they do not
# know. At the wall ours to take the upcard is SAY_KNOCK, and ours to knock is only the discard.
THEIRS = _theirs()
_OUR_MELD = {int(THEIRS[action]): action for action in range(MELD, LAYOFF)}

# Their parameters, and ours of the same meaning.
_PARAMETERS = {
    "oklahoma": "oklahoma",
    "knock_card": "knock_limit",
    "gin_bonus": "gin_bonus",
    "undercut_bonus": "undercut_bonus",
    "hand_size": "hand_size",
}


def rules_of(game: pyspiel.Game) -> Rules:
    """Returns our rules for their game.

    Raises:
        ValueError: If the game is none of gin rummy with 52 cards.
    """
    given = game.get_parameters()
    if game.get_type().short_name != "gin_rummy" or (given["num_ranks"], given["num_suits"]) != (NUM_RANKS, len(SUITS)):
        raise ValueError(f"game is {game}; expected gin_rummy with {NUM_RANKS} ranks and {len(SUITS)} suits")
    return preset("openspiel", **{ours: given[theirs] for theirs, ours in _PARAMETERS.items()})


def game_of(rules: Rules) -> pyspiel.Game:
    """Returns their game for our rules: those of the preset ``openspiel``, or with what they have a parameter for.

    Raises:
        ValueError: If they do not play these rules.
    """
    parameters = {theirs: getattr(rules, ours) for theirs, ours in _PARAMETERS.items()}
    plays = preset("openspiel", **{ours: getattr(rules, ours) for ours in _PARAMETERS.values()})
    # Who deals, and how long a match goes, makes no difference to a hand.
    names = ("name", "first_dealer", "next_dealer", "target", "draw_cap")
    plays = dataclasses.replace(plays, **{name: getattr(rules, name) for name in names})
    if plays != rules:
        raise ValueError(
            f"rules are {rules.text!r}; OpenSpiel plays those of the preset 'openspiel', of which it can change "
            f"{', '.join(_PARAMETERS.values())}"
        )
    return pyspiel.load_game("gin_rummy", parameters)


# ------------------------------------------------------------------------------------------- our players at their game


class Shadow:
    """A table of ours that follows the states of their game.

    Args:
        game: Their game.

    Attributes:
        tables: One table, at the decision of the state last followed.
        knock_said: Whether its mover has said there that it knocks, and has not yet thrown a card.

    Raises:
        ValueError: As for `rules_of`.
    """

    def __init__(self, game: pyspiel.Game) -> None:
        self.rules = rules_of(game)
        self.tables = engine.new_tables(self.rules, 1)
        self.knock_said = False
        self._played: list[int] = []  # of their history, as far as the table has followed

    def follow(self, state: pyspiel.State) -> None:
        """Brings the table to where a state is: a decision of a player, or the end of the hand.

        The state may be a later one of the same hand, which costs no more than what is new, or any other.

        Raises:
            ValueError: If the cards are not dealt yet, or a card is being dealt.
        """
        history = state.history()
        dealt = 2 * self.rules.hand_size + 1
        if len(history) < dealt or state.is_chance_node():
            raise ValueError(f"expected a player to move, not a card to be dealt:\n{state}")
        self.knock_said = False
        if not self._played or history[: len(self._played)] != self._played:
            self._deal(history[:dealt])
        while len(self._played) < len(history) and not self.knock_said:
            self._play(history[len(self._played) :])

    def _deal(self, theirs: list[int]) -> None:
        cards = OUR_CARD[theirs].tolist()
        size = self.rules.hand_size
        deck = [card for pair in zip(cards[:size], cards[size : 2 * size], strict=True) for card in pair]
        deck += cards[2 * size :]
        # In any order: each card that comes from the stock is put there when it comes.
        deck += [card for card in range(NUM_CARDS) if card not in cards]
        engine.deal(self.tables, decks=[deck], dealers=[1])
        self._played = list(theirs)

    def _play(self, theirs: list[int]) -> None:
        """Plays the first of some of their actions, together with the second where one of ours is two of theirs."""
        table, first = self.tables[0], theirs[0]
        phase, used = table["phase"], 1
        if first == DRAW_STOCK:
            deck, at = table["deck"], table["stock_at"]
            place = int(np.flatnonzero(deck == OUR_CARD[theirs[1]])[0])
            deck[[at, place]] = deck[[place, at]]
            ours, used = DRAW, 2
        elif first == SAY_KNOCK and phase != WALL:
            if len(theirs) == 1:
                self.knock_said = True
                return
            ours, used = KNOCK + int(OUR_CARD[theirs[1]]), 2
        elif first >= LAY:
            ours = _OUR_MELD[first]
        elif first >= TAKE_UPCARD:
            ours = PASS if first == STOP else TAKE
        elif phase == LAY_OFF:
            ours = layoff_of(table["laid"][table["knocking"]], table["laid_off"], int(OUR_CARD[first]))
        else:
            ours = (KNOCK if phase == WALL_THROW else DISCARD) + int(OUR_CARD[first])
        engine.step(self.tables, [ours])
        self._played += theirs[:used]

    def legal(self, state: pyspiel.State) -> tuple[np.ndarray, np.ndarray]:
        """Returns the masks of our actions that are legal at the table, and of those that are legal there too."""
        mask = engine.legal(self.tables)
        theirs = np.zeros(NUM_THEIRS, dtype=np.int8)
        theirs[state.legal_actions()] = 1
        both = mask * np.where(THEIRS >= 0, theirs[THEIRS], 0).astype(np.int8)
        phase = self.tables["phase"][0]
        if phase == WALL:
            both[0, TAKE] = mask[0, TAKE] & theirs[SAY_KNOCK]
        if phase == WALL_THROW or self.knock_said:
            both[0] = 0
            both[0, KNOCK:BIG_GIN] = mask[0, KNOCK:BIG_GIN] & theirs[CARD]
        return mask, both


def layoff_of(melds: np.ndarray, laid_off: np.ndarray, card: int) -> int:
    """Returns our action for laying off a card: on a run that it fits, or else on a set, as they do.

    Args:
        melds: The knocker's melds, (3,) masks.
        laid_off: The cards laid off on each, (3,) masks.
        card: Our number of the card.

    Raises:
        ValueError: If it fits none.
    """
    slots = [
        slot
        for slot, (meld, off) in enumerate(zip(melds.tolist(), laid_off.tolist(), strict=True))
        if meld and int(fitting(np.uint64(meld | off))) >> card & 1
    ]
    if not slots:
        raise ValueError(f"{action_name(DISCARD + card)!r}: expected a card that fits one of the knocker's melds")
    runs = [slot for slot in slots if len({other // NUM_RANKS for other in from_mask(melds[slot])}) == 1]
    return LAYOFF + (runs or slots)[0] * NUM_CARDS + card


class AgentBot(pyspiel.Bot):
    """One of our players at OpenSpiel's gin rummy, for whichever player is to move.

    It follows the state's history on a table of ours and shows the player its view there, so the player knows what it
    would know at our tables and no more. It sees as legal what is legal on both sides. Where OpenSpiel refuses a card
    that can be laid off (its known fault: the third in one direction), a player that insists passes instead.

    Args:
        agent: Anything with `agents.base.Agent.act` that plays the preset ``openspiel``, whose action table is the
            manual one.
        seed: Of the player's random choices, together with the number of the game since the bot was made.

    Raises:
        ValueError: If the game is not gin rummy with 52 cards, or the player returns what is no legal action.
    """

    def __init__(self, agent: Opponent, seed: int = 0) -> None:
        pyspiel.Bot.__init__(self)
        self.agent = agent
        self._seed, self._games = seed, 0
        self._shadow: Shadow | None = None
        self._game = ""

    def restart(self) -> None:
        """Begins another game."""
        self._games += 1

    def restart_at(self, state: pyspiel.State) -> None:
        """Begins another game at a state: what was played before is read from it."""
        self.restart()

    def inform_action(self, state: pyspiel.State, player_id: int, action: int) -> None:
        """Does nothing: the state that is to be decided tells what was played."""

    def provides_policy(self) -> bool:
        """Says that there are no probabilities to be asked for."""
        return False

    def step(self, state: pyspiel.State) -> int:
        """Returns the action that the player to move chooses."""
        name = str(state.get_game())
        if self._shadow is None or name != self._game:
            self._shadow, self._game = Shadow(state.get_game()), name
        shadow = self._shadow
        shadow.follow(state)
        ours, both = shadow.legal(state)
        # The same key again for the card that is thrown with a knock: it is one decision of the player.
        game = engine.mix_keys(self._seed, np.array([self._games]))
        keys = engine.mix_keys(int(game[0]), shadow.tables["num_moves"].astype(np.uint64))
        action = int(self.agent.act(observe(shadow.tables), both.copy(), keys)[0])
        phase = int(shadow.tables["phase"][0])
        if 0 <= action < both.shape[1] and ours[0, action] and not both[0, action] and phase == LAY_OFF:
            action = PASS
        if not 0 <= action < both.shape[1] or not both[0, action]:
            legal = ", ".join(action_name(other) for other in np.flatnonzero(both[0]).tolist())
            raise ValueError(f"the player chose action {action} in phase {PHASES[phase]!r}; legal: {legal}")
        if phase == WALL and action == TAKE:
            return SAY_KNOCK
        if KNOCK <= action < BIG_GIN and (phase == WALL_THROW or shadow.knock_said):
            return int(CARD[action - KNOCK])
        return int(THEIRS[action])


# ------------------------------------------------------------------------------------------- their bots at our tables

MakeBot = Callable[[Any, int], Any]  # (pyspiel.Game, player) -> pyspiel.Bot


def simple_bot(game: pyspiel.Game, player: int) -> pyspiel.Bot:
    """Returns OpenSpiel's simple bot."""
    return pyspiel.make_simple_gin_rummy_bot(game.get_parameters(), player)


class OpenSpielAgent:
    """An OpenSpiel bot as a player at our tables, under the rules ``openspiel``.

    A player here sees a view, a bot there a state, which holds the opponent's hand and the order of all that was
    played. So for each decision a state is made up (`imagine`) that agrees with what the view tells, with the hidden
    cards filled in from those not seen, the lowest first; the bot is restarted and asked there.

    What the state shows of the position is as it was: the observation tensor, number for number, the hand, the pile
    and its order, the cards that are known from being taken, melds and layoffs. Not carried over is what a view does
    not tell: which discard was taken when (`prev_upcard`, `repeated_move`, the history), in which order cards were laid
    off, and the real hidden cards, so a bot that looks into those sees invented ones. Where OpenSpiel would refuse the
    opponent's knock, for its inexact deadwood of eleven cards, the knock is told with another card thrown. Under
    Oklahoma the state is one of a game without, with the limit of the hand: which upcard has set it a view need not
    tell.

    A bot has no memory from decision to decision, except within a knock and the answer to one, which it goes through
    from the beginning each time. It should choose without random numbers of its own: they come from no key.

    Args:
        make_bot: Called once for each game and player, with both.
        name: What results call it.

    Raises:
        ValueError: If the rules are not OpenSpiel's, or the bot plays what is not legal at our tables.
    """

    def __init__(self, make_bot: MakeBot = simple_bot, name: str = "openspiel-simple") -> None:
        self.name = name
        self._make_bot = make_bot
        self._roots: dict[tuple[bytes, int], pyspiel.State] = {}
        self._bots: dict[tuple[str, int], pyspiel.Bot] = {}

    @property
    def version(self) -> str:
        """OpenSpiel's."""
        return "open-spiel " + importlib.metadata.version("open-spiel")

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(view.size, dtype=np.int64)
        for row in range(view.size):
            out[row] = self._choose(view[row])
            if not mask[row, out[row]]:
                phase = PHASES[view["phase"][row]]
                raise ValueError(f"bot {self.name!r} chose {action_name(int(out[row]))!r}, illegal in phase {phase!r}")
        return out

    def _choose(self, view: np.void) -> int:
        root = self._root(view)
        player = 1 if view["is_dealer"] else 0
        key = str(root.get_game()), player
        if key not in self._bots:
            self._bots[key] = self._make_bot(root.get_game(), player)
        bot = self._bots[key]
        state, since = imagine(root, view)
        bot.restart()
        for action in since:
            bot.step(state)
            state.apply_action(action)
        action = bot.step(state)
        phase = int(view["phase"])
        if action == SAY_KNOCK and phase == THROW:
            state.apply_action(action)
            return KNOCK + int(OUR_CARD[bot.step(state)])
        if action >= LAY:
            return _OUR_MELD[action]
        if action >= TAKE_UPCARD:
            return {TAKE_UPCARD: TAKE, SAY_KNOCK: TAKE, DRAW_STOCK: DRAW, STOP: PASS}[action]
        card = int(OUR_CARD[action])
        if phase == LAY_OFF:
            return layoff_of(view["opponent_melds"], view["layoffs"], card)
        return (KNOCK if phase == WALL_THROW else DISCARD) + card

    def _root(self, view: np.void) -> pyspiel.State:
        """Returns the state before the deal of the game that a view is of, which is never changed."""
        key = view["rules"].tobytes(), int(view["limit"])
        if key not in self._roots:
            rules = Rules.from_row(view["rules"])
            game = game_of(rules)
            if rules.oklahoma:
                # The limit of this hand without the upcard that has set it: nobody may know any more which it was.
                game = game_of(dataclasses.replace(rules, oklahoma=False, knock_limit=int(view["limit"])))
            self._roots[key] = game.new_initial_state()
        return self._roots[key]


# ----------------------------------------------------------------------------------------------------- made-up states


def imagine(root: pyspiel.State, view: np.void) -> tuple[pyspiel.State, list[int]]:
    """Makes up a state of theirs that agrees with what a seat to move may know (see `OpenSpielAgent`).

    Args:
        root: The state of their game before the deal; of one without Oklahoma, with the limit of the hand.
        view: A row of `gin_env.view.VIEW_DTYPE`.

    Returns:
        A state and the seat's own actions since, in their numbers, which lead from it to the decision. There are some
        only in the middle of what is one decision of a bot: where it has said that it knocks, and where it answers a
        knock.

    Raises:
        ValueError: If the seat is not to move.
    """
    if not view["to_move"]:
        raise ValueError("the seat is not to move; expected a view of one that is")
    for story in _stories(view):
        state = root.clone()
        if _plays(state, story.before):
            return state, story.since
    raise ValueError("no state of OpenSpiel's agrees with the view")


def _plays(state: pyspiel.State, actions: list[int]) -> bool:
    """Plays actions, as far as they are allowed; of a story only a knock can be in doubt."""
    doubtful = False
    for action in actions:
        # Their word for the knock, then the card that is thrown with it.
        if (doubtful or action == SAY_KNOCK) and action not in state.legal_actions():
            return False
        doubtful = action == SAY_KNOCK
        state.apply_action(action)
    return True


@dataclasses.dataclass
class _Story:
    """How a hand may have come to where a view shows it, in their numbers."""

    before: list[int]
    since: list[int]


@dataclasses.dataclass
class _Turn:
    player: int
    takes: bool  # the top of the pile, or else draws from the stock
    throws: int


def _stories(view: np.void) -> Iterator[_Story]:
    """Yields stories; there is more than one only where they may refuse the opponent's knock."""
    first = _Teller(view)
    yield first.tell()
    if LAY_OFF <= view["phase"] <= DEFEND:
        for card in first.unseen:
            yield _Teller(view, thrown=card).tell()


def _draws_after(thrower: int) -> int:
    """Returns who draws next from the stock with a player's card on the pile, or with the upcard that both refused."""
    return 0 if thrower == DEALT else 1 - thrower


class _Teller:
    """Makes up the course of a hand.

    The pile is the trace of it. The k-th card above the first was thrown there at first by who drew the k-th card of
    the stock; where another threw the card that lies there now, the place was taken from and thrown on in between,
    each time by the other player. With as few such takes as can be, most of them are spent on the cards that are known
    to have been taken; the others take a card and throw it back.

    Args:
        view: Of the seat to move.
        thrown: The card that the opponent has thrown to knock, if not the one on the pile.
    """

    def __init__(self, view: np.void, thrown: int | None = None) -> None:
        self.view = view
        self.me = 1 if view["is_dealer"] else 0
        self.phase = int(view["phase"])
        self.size = int(view["rules"]["hand_size"])
        size = int(view["pile_size"])
        players = {OWN: self.me, OPPONENT: 1 - self.me, DEALT: DEALT}
        self.pile: list[int] = view["pile"][:size].tolist()
        self.by = [players[by] for by in view["pile_by"][:size].tolist()]
        # The turn that has begun: its player, and the card that came to it. None before a draw.
        self.mover: int | None = None
        self.took = False
        self.came = NO_CARD
        taken, hand = int(view["taken"]), int(view["hand"])
        shown = 0  # the opponent's hand, once it has knocked
        if self.phase in (THROW, WALL_THROW):
            self.mover, self.took = self.me, taken != NO_CARD
            self.came = taken if self.took else int(view["drawn"])
        elif self.phase >= DECLARE:
            self.mover = self.me if self.phase == DECLARE else 1 - self.me
            self.came = self.pile.pop()
            self.by.pop()
            if thrown is not None:
                self.came = thrown
            # As if the card thrown to knock had just come. From the pile, where it was the other's turn to draw after
            # the card below: only what the other threw on top of that was there to come from.
            self.took = not self.pile or _draws_after(self.by[-1]) != self.mover
            shown = int(view["opponent_known"]) if self.mover != self.me else 0
        if self.took:
            self.pile.append(self.came)
            self.by.append(DEALT if view["draws"] == 1 else 1 - self.mover if self.mover is not None else DEALT)

        # As they were when this turn began.
        came = 0 if self.came == NO_CARD else 1 << self.came
        self.own = hand & ~came
        known, own_known = int(view["opponent_known"]), int(view["own_known"]) & ~came
        self.kept: tuple[list[int], list[int]] = ([], [])  # by player: cards taken from the pile and still held
        if not shown:
            self.kept[1 - self.me].extend(from_mask(known))
            # Cards laid down are known too, but were not taken.
            self.kept[self.me].extend(from_mask(own_known) if self.phase < DECLARE else [])
        pack = int(view["rules"]["pack"])
        self.unseen = from_mask(pack & ~(hand | came | known | to_mask(self.pile)))
        self.their_hand = from_mask(known) + ([] if shown else self.unseen)

    def tell(self) -> _Story:
        """Returns the story."""
        upcard, turns = self._turns()
        hands, draws = self._deal(upcard, turns)
        before = [int(CARD[card]) for card in (*hands[0], *hands[1], upcard)]
        if self.by[0] != DEALT:
            before += [STOP] * turns[0].player
        elif turns or self.phase >= OFFER_DEALER and not self._takes_dealt():
            before += [STOP] * (1 if self.phase == OFFER_DEALER else 2)
        elif self._takes_dealt():
            before += [STOP] * (self.mover or 0)
        for turn in turns:
            before += [TAKE_UPCARD] if turn.takes else [DRAW_STOCK, int(CARD[draws[turn.player].pop(0)])]
            before.append(int(CARD[turn.throws]))
        return self._finish(before)

    def _takes_dealt(self) -> bool:
        """Whether the turn that has begun took the upcard as it was dealt."""
        return self.took and self.by == [DEALT]

    def _finish(self, before: list[int]) -> _Story:
        """Adds the turn that has begun, and what came after a knock."""
        view = self.view
        if self.mover is None:
            return _Story(before, [])
        at_wall = self.took and view["stock"] <= view["rules"]["stock_floor"]
        if not at_wall:
            before = before + ([TAKE_UPCARD] if self.took else [DRAW_STOCK, int(CARD[self.came])])
        if self.phase == THROW:
            return _Story(before, [])
        if self.phase == WALL_THROW:
            return _Story(before, [SAY_KNOCK])
        mine, theirs = (
            [LAY + their_meld(int(meld)) for meld in view[name] if meld] for name in ("own_melds", "opponent_melds")
        )
        knock = [SAY_KNOCK, int(CARD[self.came])]
        if self.mover == self.me:
            return _Story(before, knock + mine)
        off = []
        for meld, cards in zip(view["opponent_melds"].tolist(), view["layoffs"].tolist(), strict=True):
            while cards:
                fits = from_mask(int(fitting(np.uint64(meld))) & cards)
                off += [int(CARD[card]) for card in fits]
                meld |= to_mask(fits)
                cards &= ~meld
        if self.phase == DEFEND and view["opponent_deadwood"] > 0:
            off.append(STOP)
        return _Story([*before, *knock, *theirs, STOP], off + mine)

    def _turns(self) -> tuple[int, list[_Turn]]:
        """Returns the upcard, and the turns that are over."""
        kept = self.kept
        upcard = self.pile[0]
        first = 0  # place in the pile at which a turn ended first
        if self.by[0] == DEALT:
            first = 1
        else:
            starter = self.by[0]
            upcard = kept[starter].pop() if kept[starter] else NO_CARD
        places = list(range(first, len(self.pile)))
        # Who throws first at each place: whoever did not throw the card below.
        starters = {place: _draws_after(self.by[place - 1]) if place else self.by[0] for place in places}
        chains: dict[int, list[int]] = {}
        for place in places[1:]:
            final, card = self.by[place], self.pile[place]
            if starters[place] == final:
                chains[place] = [card]
            else:
                chains[place] = [kept[final].pop() if kept[final] else card, card]
        if places:
            chains[first] = self._chain(starters[first], first)
        turns = []
        for place in places:
            player = starters[place]
            for number, card in enumerate(chains[place]):
                turns.append(_Turn(player, number > 0 or place == 0, card))
                player = 1 - player
        if upcard == NO_CARD:
            upcard = turns[0].throws  # taken, and thrown back
        return upcard, turns

    def _chain(self, thrower: int, place: int) -> list[int]:
        """Returns what is thrown at a place, one after the other, so that all cards that are left to take are taken.

        No two in a row take a card and throw it back: that would end the hand.
        """
        kept, cards = self.kept, []
        while kept[0] or kept[1]:
            if kept[1 - thrower]:
                cards.append(kept[1 - thrower].pop())
                thrower = 1 - thrower
            else:
                cards += [kept[thrower].pop()] * 2  # thrown, taken and thrown back, taken again
        return cards + [self.pile[place]] * (1 if thrower == self.by[place] else 2)

    def _deal(self, upcard: int, turns: list[_Turn]) -> tuple[list[list[int]], list[list[int]]]:
        """Returns each player's cards as dealt, and those that it draws from the stock, in order.

        A card that a player throws or holds, and has not taken, was dealt or drawn: dealt what it throws first.
        """
        cards: list[list[int]] = [[], []]
        held: list[set[int]] = [set(), set()]  # taken
        top = upcard
        draws = [0, 0]
        for turn in turns:
            if turn.takes:
                held[turn.player].add(top)
            else:
                draws[turn.player] += 1
            if turn.throws in held[turn.player]:
                held[turn.player].remove(turn.throws)
            else:
                cards[turn.player].append(turn.throws)
            top = turn.throws
        me, other = self.me, 1 - self.me
        cards[me] += [card for card in from_mask(self.own) if card not in held[me]]
        rest = [card for card in self.their_hand if card not in held[other]]
        cards[other] += rest[: self.size + draws[other] - len(cards[other])]
        assert [len(cards[player]) for player in (0, 1)] == [self.size + draws[player] for player in (0, 1)]
        return [cards[player][: self.size] for player in (0, 1)], [cards[player][self.size :] for player in (0, 1)]
