"""An exported policy: read, verify, play through onnxruntime, without torch and without pickle.

A bundle is a folder:

    =================== ==============================================================================
    file                what it holds
    =================== ==============================================================================
    policy.onnx         inputs observation (N, D) float32 and mask (N, A) int8; outputs logits
                        (N, A), about -30,000 where masked, and value (N,); any N
    policy.safetensors  the same weights by name
    config.json         game, rules and their fingerprint, observation and action schema, network
    provenance.json     how it was trained: config, seed, steps, versions
    eval.json           how it fared, and the command that says so
    golden.npz          rows with known answers; every load plays them
    README.md           the card, for people
    SHA256SUMS          checksums of all the others
    =================== ==============================================================================
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from agents.base import gumbel, register
from agents.games import GIN, Game, find_game
from gin_env.view import View

FORMAT = 1
POLICY, WEIGHTS, CONFIG, PROVENANCE, EVAL, GOLDEN, CARD, SUMS = (
    "policy.onnx",
    "policy.safetensors",
    "config.json",
    "provenance.json",
    "eval.json",
    "golden.npz",
    "README.md",
    "SHA256SUMS",
)
FILES = (POLICY, WEIGHTS, CONFIG, PROVENANCE, EVAL, GOLDEN, CARD, SUMS)
ACTIONS_VERSION = 1
# Largest difference between a logit here and on the machine that exported it.
TOLERANCE = 1e-3


class BundleError(ValueError):
    """A bundle that is missing, damaged, or made for something else. The message names what and both sides."""


def action_schema(game: Game = GIN, rules: Any = None) -> dict[str, Any]:
    """The action table and its version, as bundles carry them; of gin it is the same under all rules."""
    return {"version": ACTIONS_VERSION, "names": game.action_names(rules)}


def game_in(config: dict[str, Any]) -> Game:
    """The game of a bundle's config. One from before there was a second game does not say: it is gin.

    Raises:
        ValueError: If there is no such game.
    """
    return find_game(config.get("game", "gin"))


def checksums(folder: Path) -> str:
    """The text of SHA256SUMS for a folder, as the sha256sum program writes it."""
    lines = []
    for path in sorted(folder.iterdir()):
        if path.name != SUMS:
            lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    return "".join(lines)


def read_config(folder: Path) -> dict[str, Any]:
    """Verifies a bundle's checksums, schema and rules, and returns its config.

    Raises:
        BundleError: If a file is missing or damaged, or the schema or rules are not those of this library.
    """
    _verify_sums(folder)
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        found, game = int(config["format"]), game_in(config)
        rules = game.rules_of(config["rules"])
        sides = (
            ("observation schema", config["observation"], game.schema(rules)),
            ("action schema", config["actions"], action_schema(game, rules)),
            ("rules fingerprint", config["rules_fingerprint"], rules.fingerprint),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"bundle {folder}: {CONFIG} cannot be read: {error}") from None
    if found != FORMAT:
        raise BundleError(f"bundle {folder} has format {found}; this library reads format {FORMAT}")
    for what, theirs, ours in sides:
        if theirs != ours:
            raise BundleError(f"bundle {folder} has another {what}: {_difference(theirs, ours)}")
    return config


def _verify_sums(folder: Path) -> None:
    if not folder.is_dir():
        raise BundleError(f"there is no bundle folder {folder}")
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
        expected = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except FileNotFoundError:
        raise BundleError(f"{folder} is no bundle: it has no {SUMS}") from None
    except (OSError, ValueError) as error:
        raise BundleError(f"bundle {folder}: {SUMS} cannot be read: {error}") from None
    for name in (POLICY, CONFIG, GOLDEN):
        if name not in expected:
            raise BundleError(f"bundle {folder}: {SUMS} does not name {name}")
    for name, digest in expected.items():
        path = folder / name
        if not path.is_file():
            raise BundleError(f"bundle {folder} lacks {name}, which {SUMS} names")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != digest:
            raise BundleError(f"bundle {folder}: {name} is damaged (sha256 {found[:12]}…, expected {digest[:12]}…)")


def _difference(theirs: Any, ours: Any) -> str:
    """Says the first difference of two schemas in words."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in ours:
            if theirs.get(key) != ours[key]:
                return f"{key}: {_difference(theirs.get(key), ours[key])}"
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            if one != other:
                return f"entry {place} is {one!r} in the bundle and {other!r} here"
    return f"{theirs!r} in the bundle and {ours!r} here"


class BundleAgent:
    """Plays an exported policy.

    Args:
        folder: The bundle.
        sample: Whether to draw from the policy instead of taking its likeliest action (any number but 0).
        threads: Threads for onnxruntime.
        any_rules: Whether it may play rules that it was not trained for (any number but 0).

    Attributes:
        game: The name of the game it plays.
        rules: The rules it was trained for.
        version: Says which bundle it is: a hash of its files.

    Raises:
        BundleError: If the bundle is damaged, made for other schemas, or does not reproduce its golden rows.
    """

    def __init__(self, folder: str | Path, sample: int = 0, threads: int = 1, any_rules: int = 0) -> None:
        folder = Path(folder)
        config = read_config(folder)
        try:
            import onnxruntime
        except ImportError:
            raise BundleError(
                f"playing bundle {folder} needs onnxruntime; install it with: pip install 'gin-env[onnx]'"
            ) from None
        self._made_of = (folder.absolute(), sample, threads, any_rules)
        self.name = folder.name
        self.version = "bundle " + hashlib.sha256((folder / SUMS).read_bytes()).hexdigest()[:12]
        self.sample = bool(sample)
        self.any_rules = bool(any_rules)
        self.plays = game_in(config)
        self.game = self.plays.name
        self.rules = self.plays.rules_of(config["rules"])
        self._record = self.rules.record()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Its warnings are about how the graph was exported, which is not what a player can mend.
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(folder / POLICY), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own exceptions share no base class
            raise BundleError(f"bundle {folder}: {POLICY} cannot be loaded: {str(error).splitlines()[0]}") from None
        self._check_golden(folder)

    def __reduce__(self) -> tuple[type["BundleAgent"], tuple[Path, int, int, int]]:
        # onnxruntime's session cannot be pickled: a copy reads the bundle again, which must still lie there.
        return type(self), self._made_of

    def _check_golden(self, folder: Path) -> None:
        try:
            # Opened here: numpy leaves a damaged archive open.
            with open(folder / GOLDEN, "rb") as file, np.load(file, allow_pickle=False) as golden:
                logits, value = self.evaluate(golden["observation"], golden["mask"])
                # A NaN on either side must show; Python's max would lose it.
                worst = np.maximum(np.abs(logits - golden["logits"]).max(), np.abs(value - golden["value"]).max())
        except Exception as error:  # onnxruntime's and zipfile's own exceptions share no base class
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise BundleError(f"bundle {folder}: {GOLDEN} cannot be played: {reason}") from None
        if not worst <= TOLERANCE:
            raise BundleError(
                f"bundle {folder} does not reproduce its golden rows: off by {worst:.2g}, not {TOLERANCE:g} or less"
            )

    def evaluate(self, observation: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logits (N, A) and values (N,) of observations (N, D) float32 and masks (N, A) int8."""
        logits, value = self._session.run(None, {"observation": observation, "mask": mask})
        return logits, value

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`.

        Raises:
            BundleError: If the table plays other rules than the bundle was trained for.
        """
        logits = self._logits(view, mask)
        if self.sample:
            logits = logits + gumbel(rng, logits.shape[1])
        return self.plays.finish(view, logits.argmax(axis=1))

    def probabilities(self, view: View, mask: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent`.

        Raises:
            BundleError: As for `act`.
        """
        return self.plays.policy(self._logits(view, mask), view, mask, self.sample)

    def _logits(self, view: View, mask: np.ndarray) -> np.ndarray:
        self._check_rules(view)
        seen, legal = self.plays.network_inputs(view, mask)
        return self.evaluate(np.ascontiguousarray(seen), np.ascontiguousarray(legal, dtype=np.int8))[0]

    def _check_rules(self, view: View) -> None:
        difference = "" if self.any_rules else other_rules(self._record[0], view, self.plays.free_rules)
        if difference:
            raise BundleError(
                f"bundle {self.name} was trained for rules {self.rules.name!r} with {difference}; with the option "
                "any_rules=1 it plays all the same"
            )


def other_rules(record: np.void, view: View, free: tuple[str, ...] = GIN.free_rules) -> str:
    """Says where a table's rules differ from those that a policy was trained for, apart from some fields.

    Args:
        record: A row of the game's ``RULES_DTYPE``, of the policy.
        view: (N,) of tables that all play the same rules.
        free: Fields that may differ (`agents.games.Game.free_rules`).

    Returns:
        The first difference, for the end of a sentence; "" if there is none.
    """
    if not view.size or record == view["rules"][0]:
        return ""
    ours = view["rules"][0]
    for field in record.dtype.names or ():
        if field not in free and record[field] != ours[field]:
            return f"{field}={record[field]}, and this table plays {field}={ours[field]}"
    return ""


PRETRAINED = Path(__file__).parent / "pretrained"


@register("best")
def best(sample: int = 0, threads: int = 1, any_rules: int = 1) -> BundleAgent:
    """The strongest player that comes with this library: a network, trained by self-play and against scripted players.

    It plays the likeliest action of its policy, by onnxruntime. It has learned single hands under the rules cardpuzzle
    and matches under eaai. The card of the bundle, agents/pretrained/best, says how it was trained and how it fares.

    Args:
        sample: Whether to draw from its policy instead of taking the likeliest action (any number but 0).
        threads: Threads for onnxruntime.
        any_rules: Whether it may play rules that it was not trained for (any number but 0).
    """
    return BundleAgent(PRETRAINED / "best", sample, threads, any_rules)
