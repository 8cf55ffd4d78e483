"""A sequential test of two players: plays until it is decided which of two claims to believe.

The claims are about the points a hand that player a wins from player b: at most ``null`` (it is not better), or at
least ``margin`` (it is better by something that matters). The test is the generalised sequential probability ratio
test for a mean whose variance is unknown, as chess engines are tested (Van den Bergh 2021, "A practical introduction to
the GSPRT"; Wald 1945 for the bounds). One number is made of each deal, the mean of its two games. After n of them with
mean m and variance v the log-likelihood ratio of the two claims' edges is nearly

    LLR = n * (margin - null) * (m - (null + margin) / 2) / v

and the test stops at log(beta / (1 - alpha)) for the first claim, at log((1 - beta) / alpha) for the second. Where
the true mean is at most ``null`` it believes the second claim with a probability of about alpha at most; where it is at
least ``margin``, the first with about beta at most. In between either may come out. It looks only after whole chunks of
deals, always the same ones, so the batch size changes nothing and the errors are rather smaller. All this rests on the
means being nearly normal: of players who differ in one deal of a thousand the first hundred deals tell nothing.

Why this one: it needs about half the deals of a fixed number with the same errors. A confidence sequence that excludes
one of the claims would be valid as well, and would take longer; it serves for the interval instead, for the usual one
is wrong after a test that stopped because of what it saw (Waudby-Smith et al. 2024, "Time-uniform central limit theory
and asymptotic confidence sequences").

    >>> import agents
    >>> from experiments.sprt import sprt
    >>> sprt(agents.make("greedy"), agents.make("random")).decision
    'better'
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from agents.base import Agent
from agents.match import Games, check_match, identify, play_games
from gin_env.rules import Rules

Decision = Literal["better", "not better"]

# The interval is narrowest after so many chunks. It must not depend on the data.
_NARROWEST = 20


def llr_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Returns the log-likelihood ratios at which the test stops: for the first claim, and for the second."""
    return math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)


def log_likelihood_ratio(deals: Any, total: Any, squares: Any, null: float, margin: float) -> Any:
    """Returns how much likelier the points are under the second claim (see the module).

    Args:
        deals: Number of deals; a number or an array, like the next two.
        total: Sum of their points, the mean of two games each.
        squares: Sum of the squares.
        null: Points a hand of the first claim.
        margin: Of the second.

    Returns:
        Natural logarithms, of the arguments' shape; infinite where the points do not vary.
    """
    mean = np.asarray(total) / deals
    variance = np.maximum(np.asarray(squares) / deals - mean**2, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return deals * (margin - null) * (mean - (null + margin) / 2) / variance


def fixed_deals(sd: float, null: float, margin: float, alpha: float, beta: float) -> int:
    """Returns how many deals a test of a fixed number needs for the same errors.

    Args:
        sd: Standard deviation of a deal's points, the mean of two games.
        null: Points a hand of the first claim.
        margin: Of the second.
        alpha: Probability to believe the second claim where the first is true.
        beta: And the other way round.
    """
    quantiles = NormalDist().inv_cdf(1 - alpha) + NormalDist().inv_cdf(1 - beta)
    return math.ceil((quantiles * sd / (margin - null)) ** 2)


def anytime_half_width(deals: Any, sd: Any, chunk: int, error: float = 0.05) -> Any:
    """Returns half the width of an interval for the mean that holds whenever one stops to look.

    Args:
        deals: Number of deals; a number or an array, like the next.
        sd: Standard deviation of a deal's points.
        chunk: Deals between two looks; the interval is narrowest after twenty of them.
        error: Probability that the mean is ever outside.
    """
    scale = (-2 * math.log(error) + math.log(1 - 2 * math.log(error))) / (_NARROWEST * chunk)
    grown = np.asarray(deals) * scale + 1
    return sd * np.sqrt(2 * grown / (np.asarray(deals) ** 2 * scale) * np.log(np.sqrt(grown) / error))


@dataclass(frozen=True)
class SprtResult:
    """How a sequential test ended. All points are per hand, from side a's point of view.

    Attributes:
        a: Name of the one player.
        b: Name of the other.
        rules: Name of the rules.
        fingerprint: Of the rules.
        seed: Of the deals and the players' random choices.
        deck_hash: SHA-256 over the deals used.
        null: Points of the first claim, "not better".
        margin: Points of the second claim, "better".
        alpha: Probability to decide "better" where the first claim is true.
        beta: Probability to decide "not better" where the second is.
        chunk: Deals between two looks.
        max_deals: Where it would have given up.
        decision: "better", "not better", or None where ``max_deals`` came first.
        deals: Deals used, each played twice.
        llr: Log-likelihood ratio at the end; infinite if the points do not vary.
        bounds: Where it stops: below for "not better", above for "better".
        points_per_hand: Mean. It is biased: a test that stops on what it sees stops when the mean happens to be
            extreme, so the true difference is likely less so.
        ci95: Interval of 95 % confidence that allows for the stopping.
        sd: Standard deviation of a deal's points, the mean of two games.
        fixed_deals: Deals that a test of a fixed number would need for the same errors.
        saved: Of these, what was not played; negative if more was. None if there is no decision.
        forfeits: Games that a and b lost by a forfeit.
    """

    a: str
    b: str
    rules: str
    fingerprint: str
    seed: int
    deck_hash: str
    null: float
    margin: float
    alpha: float
    beta: float
    chunk: int
    max_deals: int
    decision: Decision | None
    deals: int
    llr: float
    bounds: tuple[float, float]
    points_per_hand: float
    ci95: tuple[float, float]
    sd: float
    fixed_deals: int
    saved: int | None
    forfeits: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values; an infinite ratio is None."""
        plain = asdict(self)
        del plain["fingerprint"]
        return plain | {
            "rules": {"name": self.rules, "fingerprint": self.fingerprint},
            "llr": self.llr if math.isfinite(self.llr) else None,
            "bounds": list(self.bounds),
            "ci95": list(self.ci95),
            "forfeits": dict(zip("ab", self.forfeits, strict=True)),
        }


def sprt(
    a: Agent,
    b: Agent,
    *,
    null: float = 0.0,
    margin: float = 0.5,
    alpha: float = 0.05,
    beta: float = 0.05,
    max_deals: int = 100_000,
    chunk: int = 100,
    seed: int = 0,
    rules: Rules | str = "cardpuzzle",
    batch: int = 2048,
    progress: Callable[[int, float], None] | None = None,
) -> SprtResult:
    """Plays single hands until it is decided whether a is better than b.

    Args:
        a: The player in question.
        b: The other.
        null: Points a hand that a wins if it is not better.
        margin: Points a hand that it wins at least if it is better.
        alpha: Probability of a false "better".
        beta: Probability of a false "not better".
        max_deals: Deals after which it gives up.
        chunk: Deals between two looks; also the least number of deals. It is part of the test: another one may decide
            at another place.
        seed: Decides all decks, and all keys of the players.
        rules: Rules, or text that names them.
        batch: Most games to play at once. It changes the speed, never the result.
        progress: Called after each chunk with the deals played and the log-likelihood ratio.

    Raises:
        ValueError: If an argument is out of range.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not 0 < value < 0.5:
            raise ValueError(f"{name} is {value}; expected more than 0 and less than 0.5")
    if not (math.isfinite(null) and math.isfinite(margin) and null < margin):
        raise ValueError(f"margin is {margin}; expected more than {null}, the points of the claim 'not better'")
    if chunk < 50:
        raise ValueError(f"chunk is {chunk}; expected at least 50 deals, for the normal approximation")
    if max_deals < chunk:
        raise ValueError(f"max_deals is {max_deals}; expected at least one chunk, {chunk}")
    rules = check_match(rules, False, chunk, seed, batch)
    low, high = llr_bounds(alpha, beta)
    parts: list[Games] = []
    deals = total = squares = 0  # of sums over both games: whole numbers
    decision: Decision | None = None
    while decision is None and deals < max_deals:
        played = play_games(
            a,
            b,
            deals=min(chunk, max_deals - deals),
            first=deals,
            seed=seed,
            rules=rules,
            batch=batch,
            forfeits=True,
        )
        sums = played.points.astype(np.int64).sum(axis=1)
        deals, total, squares = deals + sums.size, total + int(sums.sum()), squares + int((sums**2).sum())
        llr = float(log_likelihood_ratio(deals, total / 2, squares / 4, null, margin))
        parts.append(played)
        if progress is not None:
            progress(deals, llr)
        decision = "better" if llr >= high else "not better" if llr <= low else None
    games = Games.join(parts)
    mean = total / 2 / deals
    sd = math.sqrt(max(squares / 4 - deals * mean**2, 0) / (deals - 1))
    half = float(anytime_half_width(deals, sd, chunk))
    fixed = fixed_deals(sd, null, margin, alpha, beta)
    known = identify(a, b, rules=rules, match=False, seed=seed, deals=deals)
    return SprtResult(
        **{name: known[name] for name in ("a", "b", "rules", "fingerprint", "seed", "deck_hash")},  # type: ignore[arg-type]
        null=null,
        margin=margin,
        alpha=alpha,
        beta=beta,
        chunk=chunk,
        max_deals=max_deals,
        decision=decision,
        deals=deals,
        llr=llr,
        bounds=(low, high),
        points_per_hand=mean,
        ci95=(mean - half, mean + half),
        sd=sd,
        fixed_deals=fixed,
        saved=None if decision is None else fixed - deals,
        forfeits=(games.side(0)["forfeits"], games.side(1)["forfeits"]),
    )


def sprt_line(result: SprtResult) -> str:
    """Says in one sentence what was decided."""
    a, b = result.a, result.b
    deals = f"{result.deals:,} deals played twice"
    if result.decision is None:
        return f"undecided whether {a} is better than {b}: {deals}; more are needed (--max-deals)"
    fixed = f"a test of a fixed number needs {result.fixed_deals:,}"
    saved = f"{result.saved:,} saved" if (result.saved or 0) >= 0 else f"{-(result.saved or 0):,} fewer"
    if result.decision == "better":
        what = f"{a} is better than {b} (more than {result.null:g} points a hand, error at most {result.alpha:.0%})"
    else:
        what = f"{a} is not better than {b} by {result.margin:g} points a hand (error at most {result.beta:.0%})"
    return f"{what}: decided after {deals}; {fixed}, {saved}"


def print_sprt(result: SprtResult, console: Console) -> None:
    """Prints a sequential test: its table, what identifies it, and the sentence that sums it up."""
    table = Table(title=f"{result.rules}, seed {result.seed}", title_justify="left", show_header=False)
    low, high = result.bounds
    rows = [
        ("claims, points a hand", f"{result.null:+z.2f} or less; {result.margin:+z.2f} or more"),
        ("log-likelihood ratio", f"{result.llr:+z.2f}, stops at {low:+.2f} and {high:+.2f}"),
        ("deals", f"{result.deals:,} of at most {result.max_deals:,}, looked at every {result.chunk:,}"),
        ("points a hand", f"{result.points_per_hand:+z.2f}, biased away from the middle by the stopping"),
        ("95 % interval", f"{result.ci95[0]:+z.2f} to {result.ci95[1]:+z.2f}, valid whenever it stops"),
        ("deviation of a deal", f"{result.sd:.1f}"),
    ]
    if any(result.forfeits):
        rows.append(("games forfeited", " and ".join(f"{number:,}" for number in result.forfeits)))
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"rules {result.fingerprint}, decks {result.deck_hash[:16]}", style="dim", highlight=False)
    console.print(sprt_line(result), style="bold", highlight=False, markup=False, soft_wrap=True)
