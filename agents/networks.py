"""The policy networks (torch).

A network maps observations (`gin_env.view`) and masks to logits over the 108 actions and a value. What a `SuitNet`
plays at step 0 is arithmetic: throw what leaves the least deadwood, take what saves deadwood, wait for gin until the
last turn. It learns the rest. A `FlatNet` starts from noise. A `MeldNet` plays Rummy40, whose actions are 1311 or 1987.
"""

import inspect
from collections.abc import Mapping
from itertools import chain, pairwise, permutations
from typing import Any

import torch
from torch import Tensor, nn

from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, NUM_ACTIONS, PASS, TAKE
from gin_env.cards import CARD_POINTS, NUM_CARDS, NUM_RANKS, NUM_SUITS
from gin_env.rummy40 import actions as rummy40
from gin_env.rummy40 import view as rummy40_view
from gin_env.rummy40.cards import JOKER
from gin_env.view import NUM_PLANES, NUM_SCALARS, OBSERVATION_SIZE, PLANE, SCALAR

# Stands for "never" in a softmax. Finite, so that 0 times it is 0 and not NaN, and inside the range of float16.
MASKED = -30_000.0

# The cards that a player does not see: the opponent's hand; the stock, 1 for its top card, less for those below.
NUM_HIDDEN_PLANES = 2
HIDDEN_SIZE = NUM_HIDDEN_PLANES * NUM_CARDS
# What a critic is told besides: how the hand would end between simple players, three pairs of them; the opponent's
# deadwood (`training.rollout.hidden_cards`).
NUM_OUTLOOKS = 4
CRITIC_SIZE = HIDDEN_SIZE + NUM_OUTLOOKS


def masked_logits(logits: Tensor, mask: Tensor) -> Tensor:
    """Returns the logits with `MASKED` in place of illegal actions. Both (N, 108); mask any number or bool type."""
    return logits.masked_fill(mask == 0, MASKED)


WINDOW = 7  # ranks that the card head sees around a card, its own in the middle


class SuitTrunk(nn.Module):
    """One token for each suit, weights shared: what renames the suits of a position renames the tokens.

    Each suit's token reads its own planes, the mean of all suits' planes and the scalars; then, in each layer, it mixes
    in the mean over the tokens.

    Args:
        planes: Planes of 52 numbers.
        scalars: Numbers beside them.
        width: Units of each layer.
        layers: Mixing layers after the first.
    """

    cards: int
    offset: Tensor

    def __init__(self, planes: int, scalars: int, width: int, layers: int) -> None:
        super().__init__()
        self.suit_in = nn.Linear(planes * NUM_RANKS, width)
        self.shared_in = nn.Linear(planes * NUM_RANKS + scalars, width, bias=False)
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.mean = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.value_out = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        start_small(self.value_out[2])  # the value begins as zero

    def tokens(self, suits: Tensor, scalars: Tensor) -> Tensor:
        """Returns (N, 4, width) for planes by suit, (N, 4, planes * 13), and scalars (N, scalars)."""
        shared = self.shared_in(torch.cat([suits.mean(dim=1), scalars], dim=1))
        x = torch.relu(self.suit_in(suits) + shared.unsqueeze(1))
        for own, mean in zip(self.own, self.mean, strict=True):
            x = torch.relu(own(x) + mean(x.mean(dim=1)).unsqueeze(1))
        return x

    def add_windows(self, planes: int, width: int, cards: int, card_layers: int) -> None:
        """Adds what `around` needs: see `SuitNet` for the arguments."""
        self.cards = cards
        self.windows = nn.ParameterList(
            window_weights(inputs, cards) for inputs in (2 * planes, *[cards] * card_layers)
        )
        self.from_suit = nn.Linear(width, cards)
        self.across = nn.ModuleList(nn.Linear(cards, cards) for _ in range(card_layers))
        ranks = torch.arange(NUM_RANKS)
        offset = ranks[:, None] - ranks[None, :] + WINDOW // 2
        # Outside the window stands a weight of zero, put in at the end.
        offset = torch.where((offset < 0) | (offset >= WINDOW), WINDOW, offset)
        self.register_buffer("offset", offset, persistent=False)

    def grown(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the weights of a smaller network in a form that fits this one.

        This network then computes the same: nothing reads a new unit or channel yet, and a new layer changes nothing.
        What is new still learns from the first step on.

        Args:
            weights: The weights by name of a network with fewer ``width``, ``layers``, ``cards`` or ``card_layers``,
                the same otherwise.
        """
        fitting = dict(weights)
        for name, own in self.state_dict().items():
            head, _, rest = name.partition(".")
            old = weights.get(name)
            if old is None:
                if head == "own":
                    fitting[name] = torch.eye(own.shape[0]) if own.ndim == 2 else torch.zeros_like(own)
                elif head == "mean":
                    fitting[name] = torch.zeros_like(own)
                elif head in ("windows", "across"):  # a further layer of a head that was there, or the whole head
                    fitting[name] = torch.zeros_like(own) if "windows.0" in weights else own
                elif head in ("window_out", "held_plain", "held_value"):
                    fitting[name] = torch.zeros_like(own)
                elif head == "from_suit":
                    fitting[name] = own
                continue
            if own.ndim != old.ndim or own.shape == old.shape:
                continue
            if any(a < b for a, b in zip(own.shape, old.shape, strict=True)):
                continue  # smaller: whoever loads them will be told
            # Inputs, whatever they are summed over, and outputs.
            if head == "windows":
                new, old = (tensor.unflatten(0, (-1, WINDOW)).movedim(2, 0) for tensor in (own, old))
            elif head in ("held_plain", "held_value") and rest == "weight":
                new, old = (tensor.unflatten(1, (2, -1)).movedim(2, 1) for tensor in (own, old))
            else:
                new = own
            new = new.clone()
            if new.ndim > 1:
                new[: old.shape[0], old.shape[1] :] = 0
                new[: old.shape[0], : old.shape[1]] = old
            else:
                new[: old.shape[0]] = old
            if head == "windows":
                new = new.movedim(0, 2)
            elif new.ndim == 3:
                new = new.movedim(1, 2)
            fitting[name] = new.reshape(own.shape)
        return fitting

    def around(self, suits: Tensor, x: Tensor) -> Tensor:
        """What stands around each card: (N, 4, 13, cards)."""
        planes = suits.shape[2] // NUM_RANKS * WINDOW
        near = suits @ self._sliding(self.windows[0][:planes])
        # What all suits have in common is looked at once.
        everywhere = suits.mean(dim=1, keepdim=True) @ self._sliding(self.windows[0][planes:])
        h = torch.relu(self._by_rank(near + everywhere) + self.from_suit(x).unsqueeze(2))
        for window, across in zip(list(self.windows)[1:], self.across, strict=True):
            near = self._by_rank(h.transpose(2, 3).flatten(2) @ self._sliding(window))
            h = torch.relu(h + near + across(h.mean(dim=1)).unsqueeze(1))
        return h

    def _sliding(self, window: Tensor) -> Tensor:
        """The matrix whose product is a convolution along the ranks, (inputs * 13, 13 * cards).

        It repeats the weights, but on so few channels its product is much faster than a convolution.
        """
        kernel = nn.functional.pad(window.reshape(-1, WINDOW, self.cards), (0, 0, 0, 1))
        return kernel[:, self.offset].flatten(2).flatten(0, 1)

    def _by_rank(self, rows: Tensor) -> Tensor:
        return rows.reshape(-1, NUM_SUITS, NUM_RANKS, self.cards)


def start_small(head: nn.Module) -> None:
    """Lets a linear layer begin near zero."""
    assert isinstance(head, nn.Linear)
    nn.init.normal_(head.weight, std=0.01)
    nn.init.zeros_(head.bias)


def by_suit(planes: Tensor) -> Tensor:
    """Reorders planes (N, P * 52) to one row for each suit: (N, 4, P * 13)."""
    return planes.reshape(planes.shape[0], -1, NUM_SUITS, NUM_RANKS).transpose(1, 2).flatten(2)


class SuitNet(SuitTrunk):
    """A network that knows that suits are alike, and begins as arithmetic.

    The game is the same under all 24 permutations of the suits, and so is this network, exactly. A suit's token emits
    the logits of its 13 discards and 13 knocks; the other four actions and the value read the mean of the tokens.

    Args:
        width: Units of each layer.
        layers: Mixing layers after the first.
        knock_bias: Initial logit of a knock short of gin; below zero it waits for gin.
        cards: Channels of a head that looks at the seven ranks around each card, of its suit and of all suits, with
            weights shared by all cards; 0 leaves it out.
        card_layers: Further layers of that head.
        hand: Whether it also guesses the opponent's hand (`SuitNet.outputs`).
        skip: Whether logits begin as arithmetic; without it they begin as noise, to compare with.
    """

    def __init__(
        self,
        width: int = 64,
        layers: int = 2,
        knock_bias: float = -3.0,
        cards: int = 0,
        card_layers: int = 1,
        hand: bool = False,
        skip: bool = True,
    ) -> None:
        super().__init__(NUM_PLANES, NUM_SCALARS, width, layers)
        self.settings: dict[str, Any] = {
            "width": width,
            "layers": layers,
            "knock_bias": knock_bias,
            "cards": cards,
            "card_layers": card_layers,
            "hand": hand,
            "skip": skip,
        }
        self.skip = skip
        # Logits begin as arithmetic alone.
        self.card_out = nn.Linear(width, 2 * NUM_RANKS)
        self.plain_out = nn.Linear(width, 4)
        start_small(self.card_out)
        start_small(self.plain_out)
        self.cards = cards
        if cards:
            self.add_windows(NUM_PLANES, width, cards, card_layers)
            self.window_out = nn.Linear(cards, 2)
            # What the cards in hand and the upcard say together.
            self.held_plain = nn.Linear(2 * cards, 4)
            self.held_value = nn.Linear(2 * cards, width)
            for head in (self.window_out, self.held_plain, self.held_value):
                start_small(head)
        if hand:
            self.hand_out = nn.Linear(width, NUM_RANKS)
            start_small(self.hand_out)
        # Logits for each ten points of deadwood, the price of knocking before gin, and how the end of the stock lowers
        # it. Learned.
        self.deadwood_scale = nn.Parameter(torch.tensor(10.0))
        self.knock_bias = nn.Parameter(torch.tensor(float(knock_bias)))
        self.end_bias = nn.Parameter(torch.tensor(6.0))

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the policy and the value.

        Args:
            observation: (N, OBSERVATION_SIZE) float32.
            mask: (N, 108) int8 or bool, 1 for legal actions. A row without any gives `MASKED` everywhere.

        Returns:
            Logits (N, 108), `MASKED` where illegal, and values (N,), in the trainer's units of points.
        """
        logits, value, _ = self.outputs(observation, mask)
        return logits, value

    def outputs(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Computes what `forward` does, and the guess at the opponent's hand.

        Returns:
            Logits and values as `forward`, and (N, 52) logits of the probability that the opponent holds each card,
            meant for unseen cards only; None if the network has no such head.
        """
        scalars = observation[:, NUM_PLANES * NUM_CARDS :]
        suits = by_suit(observation[:, : NUM_PLANES * NUM_CARDS])
        x = self.tokens(suits, scalars)
        pooled = x.mean(dim=1)

        cards, plain, value = self.card_out(x), self.plain_out(pooled), self.value_out[0](pooled)
        if self.cards:
            around = self.around(suits, x)
            cards = cards + self.window_out(around).transpose(2, 3).flatten(2)
            planes = (PLANE["hand"], PLANE["upcard"])
            held = torch.stack([observation[:, at : at + NUM_CARDS] for at in planes], dim=1)
            summary = (held @ around.flatten(1, 2)).flatten(1)
            plain = plain + self.held_plain(summary)
            value = value + self.held_value(summary)
        discards, knocks = (part.flatten(1) for part in cards.split(NUM_RANKS, dim=2))
        value = self.value_out[2](torch.relu(value)).squeeze(1)
        take, big_gin = plain[:, TAKE : TAKE + 1], plain[:, 3:4]
        if self.skip:
            after = observation[:, PLANE["deadwood_after"] : PLANE["deadwood_after"] + NUM_CARDS]
            saves = observation[:, SCALAR["take_saves"] : SCALAR["take_saves"] + 1]
            discards = discards - self.deadwood_scale * after
            knocks = knocks - self.deadwood_scale * after
            # Gin is better than throwing the same card and going on. Short of gin it waits, but not for a dead hand.
            end_near = observation[:, SCALAR["end_near"] : SCALAR["end_near"] + 1]
            # 1 in the last turn, also where the opponent still has one card to draw; then 2/3, 1/2, 2/5 ...
            last_turn = (2 * end_near).clamp(max=1)
            knocks = knocks + torch.where(after > 0, self.knock_bias + self.end_bias * last_turn, 3.0)
            # Taking must save something: without that it only shows a card.
            take = take + self.deadwood_scale * saves - 1
            big_gin = big_gin + 3
        logits = torch.cat([plain[:, PASS : DRAW + 1], take, discards, knocks, big_gin], dim=1)
        hand = None
        if self.settings["hand"]:
            # It begins by counting: each unseen card is as likely to be one of the opponent's unknown ones.
            unseen = observation[:, PLANE["unseen"] : PLANE["unseen"] + NUM_CARDS].sum(dim=1, keepdim=True)
            known = 10 * observation[:, SCALAR["opponent_known_count"] : SCALAR["opponent_known_count"] + 1]
            share = ((10 - known) / unseen.clamp(min=1)).clamp(0.01, 0.99)
            hand = self.hand_out(x).flatten(1) + torch.logit(share)
        return masked_logits(logits, mask), value, hand


def window_weights(inputs: int, outputs: int) -> nn.Parameter:
    """New weights of a convolution over `WINDOW` ranks, (inputs * WINDOW, outputs)."""
    weights = torch.empty(inputs * WINDOW, outputs)
    nn.init.kaiming_uniform_(weights.T, a=5**0.5)
    return nn.Parameter(weights)


class Critic(SuitTrunk):
    """A value that may see everything: the observation, the opponent's hand and the order of the stock.

    It serves as a baseline in training only. What it sees beyond the observation does not depend on the action, so the
    gradient stays unbiased. Most of the luck it knows from play-outs: simple players finish the hand with the cards as
    they lie, which tells twice as much about its end as a player's own view does.

    Args:
        width: Units of each layer.
        layers: Mixing layers after the first.
    """

    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__(NUM_PLANES + NUM_HIDDEN_PLANES, NUM_SCALARS + NUM_OUTLOOKS, width, layers)
        self.outlook = nn.Linear(NUM_OUTLOOKS, 1)
        start_small(self.outlook)

    def forward(self, observation: Tensor, hidden: Tensor) -> Tensor:
        """Computes values (N,) from observations (N, OBSERVATION_SIZE) and what is hidden (N, CRITIC_SIZE)."""
        cards, outlooks = hidden.split([HIDDEN_SIZE, NUM_OUTLOOKS], dim=1)
        planes = torch.cat([observation[:, : NUM_PLANES * NUM_CARDS], cards], dim=1)
        x = self.tokens(by_suit(planes), torch.cat([observation[:, NUM_PLANES * NUM_CARDS :], outlooks], dim=1))
        values: Tensor = (self.value_out(x.mean(dim=1)) + self.outlook(outlooks)).squeeze(1)
        return values


# The order in which `SuitNet.forward` puts its parts together.
assert (PASS, DRAW, TAKE, DISCARD, KNOCK, BIG_GIN) == (0, 1, 2, 3, 3 + NUM_CARDS, 3 + 2 * NUM_CARDS)
assert BIG_GIN + 1 == NUM_ACTIONS


class FlatNet(nn.Module):
    """Two plain multilayer perceptrons, one for the policy and one for the value, that start from noise.

    It knows neither suits nor arithmetic, and is there to compare with: layer by layer it is what other libraries train
    by default, such as Stable-Baselines3's ``MlpPolicy``.

    Args:
        width: Units of each hidden layer.
        layers: Hidden layers.
    """

    def __init__(self, width: int = 256, layers: int = 2) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"width": width, "layers": layers}
        self.policy = self._tower(width, layers, NUM_ACTIONS)
        self.value = self._tower(width, layers, 1)

    @staticmethod
    def _tower(width: int, layers: int, outputs: int) -> nn.Sequential:
        sizes = [OBSERVATION_SIZE, *[width] * layers]
        hidden = [(nn.Linear(*pair), nn.ReLU(inplace=True)) for pair in pairwise(sizes)]
        head = nn.Linear(sizes[-1], outputs)
        # All legal actions are about as likely at the start, and the value is zero.
        nn.init.normal_(head.weight, std=0.01)
        nn.init.zeros_(head.bias)
        return nn.Sequential(*chain.from_iterable(hidden), head)

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the policy and the value: see `SuitNet.forward`."""
        return masked_logits(self.policy(observation), mask), self.value(observation).squeeze(1)

    def outputs(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Computes what `forward` does; it has no guess at the opponent's hand."""
        return *self(observation, mask), None


class MeldNet(SuitTrunk):
    """A network for Rummy40, built as `SuitNet` is and the same under all permutations of the suits.

    A suit's token emits the logits of its 13 discards and of each kind of addition and theft of its 13 cards. A meld's
    logit is a sum over its cards, of scores that the tokens give to each card in a set and in a run, and one for a
    joker. Drawing, taking, taking back and throwing a joker read the mean of the tokens.

    It begins as arithmetic: lay and add whatever is possible, take what makes a meld, throw points that are in no meld.

    Args:
        seats: Players, 2 or 4.
        packs: Packs of cards, 1 or 2.
        width: Units of each layer.
        layers: Mixing layers after the first.
        cards: Channels of a head that looks at the seven ranks around each card, as `SuitNet` has it; 0 leaves it out.
        card_layers: Further layers of that head.
        skip: Whether logits begin as arithmetic; without it they begin as noise, to compare with.
    """

    meld_cards: Tensor
    points: Tensor

    def __init__(
        self,
        seats: int = 2,
        packs: int = 1,
        width: int = 64,
        layers: int = 2,
        cards: int = 0,
        card_layers: int = 1,
        skip: bool = True,
    ) -> None:
        names = [name for name, _ in rummy40_view.planes(seats)]
        self.plane = {name: place * NUM_CARDS for place, name in enumerate(names)}
        super().__init__(len(names), len(rummy40_view.scalars(seats)), width, layers)
        self.settings: dict[str, Any] = {
            "seats": seats,
            "packs": packs,
            "width": width,
            "layers": layers,
            "cards": cards,
            "card_layers": card_layers,
            "skip": skip,
        }
        self.skip = skip
        self.num_planes = len(names)
        self.blocks = len(rummy40.BLOCKS) if packs > 1 else rummy40.NUM_PLACES
        # Of each card: its discard, its scores in a set and in a run, its places on the table.
        self.card_outputs = 3 + self.blocks
        self.card_out = nn.Linear(width, self.card_outputs * NUM_RANKS)
        # Draw, take, take back, throw a joker; a joker in a set and in a run.
        self.plain_out = nn.Linear(width, 6)
        start_small(self.card_out)
        start_small(self.plain_out)
        self.cards = cards
        if cards:
            self.add_windows(self.num_planes, width, cards, card_layers)
            self.window_out = nn.Linear(cards, self.card_outputs)
            # What the cards in hand and the upcard say together.
            self.held_plain = nn.Linear(2 * cards, 6)
            self.held_value = nn.Linear(2 * cards, width)
            for head in (self.window_out, self.held_plain, self.held_value):
                start_small(head)
        # (106, 787): the cards of each set, those of each run, and its joker.
        melds = torch.zeros(2 * NUM_CARDS + 2, rummy40.NUM_MELDS)
        for number, meld in enumerate(rummy40.MELDS):
            run = int(number >= rummy40.FIRST_RUN)
            for card in meld.cards:
                melds[2 * NUM_CARDS + run if card == JOKER else run * NUM_CARDS + card, number] = 1
        self.register_buffer("meld_cards", melds, persistent=False)
        self.register_buffer("points", torch.tensor(CARD_POINTS.astype("float32")) / 10, persistent=False)
        # Logits for ten points thrown, for throwing what is in a meld or half of one, for laying, each card laid, a
        # card added, a joker stolen, and for taking. Learned.
        start = [2.0, -8.0, -1.0, 2.0, 1.0, 4.0, 2.0, 4.0]
        self.arithmetic = nn.Parameter(torch.tensor(start))

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the policy and the value.

        Args:
            observation: (N, D) float32 (`gin_env.rummy40.view.OBSERVATION_SIZE`).
            mask: (N, A) int8 or bool, 1 for legal actions; A is 1311, or 1987 with two packs. A row without any gives
                `MASKED` everywhere.

        Returns:
            Logits (N, A), `MASKED` where illegal, and values (N,), in the trainer's units of points.
        """
        end = self.num_planes * NUM_CARDS
        scalars = observation[:, end:]
        suits = by_suit(observation[:, :end])
        x = self.tokens(suits, scalars)
        pooled = x.mean(dim=1)

        cards, plain, value = self.card_out(x), self.plain_out(pooled), self.value_out[0](pooled)
        cards = cards.reshape(-1, NUM_SUITS, self.card_outputs, NUM_RANKS)
        if self.cards:
            around = self.around(suits, x)
            cards = cards + self.window_out(around).transpose(2, 3)
            held = torch.stack([self._plane(observation, name) for name in ("hand", "upcard")], dim=1)
            summary = (held @ around.flatten(1, 2)).flatten(1)
            plain = plain + self.held_plain(summary)
            value = value + self.held_value(summary)
        value = self.value_out[2](torch.relu(value)).squeeze(1)
        cards = cards.transpose(1, 2)  # (N, outputs, 4, 13)
        discards, scores, places = cards[:, 0].flatten(1), cards[:, 1:3].flatten(1), cards[:, 3:].flatten(1)
        draw, take, back, joker = (plain[:, k : k + 1] for k in range(4))
        lays = torch.cat([scores, plain[:, 4:6]], dim=1) @ self.meld_cards
        if self.skip:
            scale, melded, paired, lay, longer, add, steal, takes = self.arithmetic
            discards = (
                discards
                + scale * self.points
                + melded * self._plane(observation, "melds")
                + paired * self._plane(observation, "pairs")
            )
            lays = lays + lay + longer * self.meld_cards.sum(dim=0)
            kinds = torch.stack([add] * rummy40.STEAL_SET + [steal] * (rummy40.NUM_PLACES - rummy40.STEAL_SET))
            kinds = torch.stack([kinds[place] for place, _ in rummy40.BLOCKS[: self.blocks]])
            places = places + kinds.repeat_interleave(NUM_CARDS)
            joker = joker + melded
            take = take + takes * (self._upcard_melds(observation) - 0.5)
        logits = torch.cat([draw, take, back, discards, joker, lays, places], dim=1)
        return masked_logits(logits, mask), value

    def outputs(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Computes what `forward` does; it has no guess at hands."""
        return *self(observation, mask), None

    def _plane(self, observation: Tensor, name: str) -> Tensor:
        at = self.plane[name]
        return observation[:, at : at + NUM_CARDS]

    def _upcard_melds(self, observation: Tensor) -> Tensor:
        """1 where the upcard makes a meld with two cards in hand or may be added to one on the table: (N, 1)."""
        hand = self._plane(observation, "hand").clamp(max=1).reshape(-1, NUM_SUITS, NUM_RANKS)
        upcard = self._plane(observation, "upcard")
        padded = nn.functional.pad(hand, (2, 2))
        below2, below, above, above2 = (padded[:, :, k : k + NUM_RANKS] for k in (0, 1, 3, 4))
        run = below2 * below + below * above + above * above2
        # Cards of the rank in other suits: its own copy makes no set.
        others = hand.sum(dim=1, keepdim=True) - hand
        made = (run + (others - 1).clamp(min=0)).flatten(1) + self._plane(observation, "takes")
        return (made.clamp(max=1) * upcard).sum(dim=1, keepdim=True)


class SuitAverage(nn.Module):
    """A network of gin that looks at a position with its suits renamed in several ways, and averages what it sees.

    The game is the same however its suits are called. A `FlatNet` has to learn that, and has not quite; a `SuitNet`
    knows it, so for that one the average changes nothing.

    Args:
        network: The network.
        size: Number of the 24 ways, the first of them as the cards are; 1 to 24.
    """

    def __init__(self, network: nn.Module, size: int = 24) -> None:
        super().__init__()
        if not 1 <= size <= 24:
            raise ValueError(f"suits are averaged in {size} ways; expected 1 to 24")
        self.network = network
        self.settings: dict[str, Any] = network.settings  # type: ignore[assignment]
        # Spread over the list, so that few ways are as different as can be.
        ways = list(permutations(range(NUM_SUITS)))[:: 24 // size][:size]
        planes = torch.arange(NUM_PLANES * NUM_CARDS).reshape(NUM_PLANES, NUM_SUITS, NUM_RANKS)
        scalars = torch.arange(NUM_PLANES * NUM_CARDS, OBSERVATION_SIZE)
        cards = torch.arange(DISCARD, BIG_GIN).reshape(2, NUM_SUITS, NUM_RANKS)  # discards and knocks
        plain = torch.arange(DISCARD)
        self.seen: Tensor
        self.played: Tensor
        self.back: Tensor
        seen = [torch.cat([planes[:, list(way)].flatten(), scalars]) for way in ways]
        played = [torch.cat([plain, cards[:, list(way)].flatten(), torch.tensor([BIG_GIN])]) for way in ways]
        self.register_buffer("seen", torch.stack(seen), persistent=False)
        self.register_buffer("played", torch.stack(played), persistent=False)
        self.register_buffer("back", torch.stack(played).argsort(dim=1), persistent=False)

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the logarithm of the mean policy, and the mean value: see `SuitNet.forward`."""
        chances = torch.zeros(mask.shape, device=observation.device)
        value = torch.zeros(mask.shape[0], device=observation.device)
        for seen, played, back in zip(self.seen, self.played, self.back, strict=True):
            logits, one = self.network(observation[:, seen], mask[:, played])
            chances += torch.softmax(logits, dim=1)[:, back]
            value += one
        size = self.seen.shape[0]
        return masked_logits((chances / size).clamp(min=1e-30).log(), mask), value / size


Network = SuitNet | FlatNet | MeldNet
NetworkType = type[SuitNet] | type[FlatNet] | type[MeldNet]

NETWORKS: dict[str, NetworkType] = {"suits": SuitNet, "mlp": FlatNet}  # of gin
GAME_NETWORKS: dict[str, dict[str, NetworkType]] = {"gin": NETWORKS, "rummy40": {"suits": MeldNet}}


def network_settings(name: str, options: Mapping[str, Any], game: str = "gin") -> dict[str, Any]:
    """Returns those of the options that the network of this name has.

    Raises:
        ValueError: If there is no such network.
    """
    known = inspect.signature(_network(name, game)).parameters
    return {option: value for option, value in options.items() if option in known}


def build_network(name: str, settings: Mapping[str, Any], game: str = "gin") -> Network:
    """Returns a new network of a game.

    Raises:
        ValueError: If there is no such network or a setting does not fit it.
    """
    try:
        return _network(name, game)(**settings)
    except TypeError as error:
        raise ValueError(f"network {name!r}: {error}") from None


def _network(name: str, game: str) -> NetworkType:
    networks = GAME_NETWORKS[game]
    if name not in networks:
        raise ValueError(
            f"{name!r} is no network{'' if game == 'gin' else f' of {game}'}; expected one of {', '.join(networks)}"
        )
    return networks[name]


def count_parameters(network: nn.Module) -> int:
    """Number of weights."""
    return sum(parameter.numel() for parameter in network.parameters())


__all__ = [
    "CRITIC_SIZE",
    "HIDDEN_SIZE",
    "MASKED",
    "NETWORKS",
    "OBSERVATION_SIZE",
    "Critic",
    "FlatNet",
    "MeldNet",
    "Network",
    "SuitNet",
    "build_network",
    "count_parameters",
    "masked_logits",
    "network_settings",
]
