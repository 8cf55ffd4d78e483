"""Checkpoint to bundle: what `agents.bundle` reads."""

import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from agents import bundle
from agents.baselines import RandomAgent
from agents.bundle import BundleAgent, BundleError
from agents.games import Game, find_game
from agents.networks import Network, build_network, count_parameters
from gin_env.keys import mix_keys
from training.checkpoint import load_checkpoint, load_network
from training.folder import CHECKPOINT, CheckpointError, load_config, write_json

GOLDEN_ROWS = 32
LIBRARIES = ("gin-env", "numpy", "numba", "torch", "onnx", "onnxscript", "onnxruntime")


class ExportError(ValueError):
    """An export that cannot be made; nothing has been left behind."""


def export(run: str | Path, out: str | Path, *, deals: int = 1000, seed: int = 7_000_003) -> dict[str, Any]:
    """Exports the policy of a run.

    The bundle is made in a folder beside ``out``, verified by playing it, and renamed.

    Args:
        run: Folder of a run of `ginrummy train`.
        out: Folder of the bundle; an older bundle there is replaced, anything else is refused.
        deals: Deals of each evaluation, each played in all seatings.
        seed: Seed of these deals; no training run plays them.

    Returns:
        What eval.json holds.

    Raises:
        CheckpointError: If the run is missing or damaged.
        ExportError: If ``out`` holds something else or cannot be written, or fewer than two deals are to be played.
    """
    run, out = Path(run), Path(out)
    config = load_config(run)
    tensors, header = load_checkpoint(run / CHECKPOINT)
    try:
        game = find_game(header.get("game", "gin"))
        rules = game.rules_of(header["rules"])
        network = build_network(header["network"]["name"], header["network"]["settings"], game.name)
        step = int(header["step"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"checkpoint {run / CHECKPOINT} is damaged: {error}") from None
    load_network(network, tensors)
    network.eval()
    if deals < 2:
        raise ExportError(f"deals is {deals}; expected at least 2, for an interval")
    if out.exists() and not _may_replace(out):
        raise ExportError(f"{out} exists and is no bundle; choose another --out")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise ExportError(f"cannot write beside {out}: {error.strerror}") from None
    try:
        evaluation = _write_bundle(part, out, run, game, rules, network, config, header, step, deals, seed)
        part.chmod(0o755)  # a temporary folder is private
        old = part.with_name(f"{part.name}.old")
        if out.exists():
            out.rename(old)
        part.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise ExportError(f"cannot write {out}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return evaluation


def _may_replace(out: Path) -> bool:
    """Says whether a folder is empty or a bundle and nothing else. Anything else there is somebody's own."""
    if not out.is_dir():
        return False
    names = {path.name for path in out.iterdir()}
    return not names or (bundle.SUMS in names and names <= set(bundle.FILES))


def _write_bundle(
    part: Path,
    out: Path,
    run: Path,
    game: Game,
    rules: Any,
    network: Network,
    config: Mapping[str, Any],
    header: Mapping[str, Any],
    step: int,
    deals: int,
    seed: int,
) -> dict[str, Any]:
    observation, mask = _positions(game, rules, GOLDEN_ROWS, seed)
    with torch.inference_mode():
        logits, value = network(torch.from_numpy(observation), torch.from_numpy(mask))
    _write_onnx(network, observation, mask, part / bundle.POLICY)
    save_file({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, part / bundle.WEIGHTS)
    (part / bundle.WEIGHTS).chmod(0o644)
    np.savez_compressed(
        part / bundle.GOLDEN, observation=observation, mask=mask, logits=logits.numpy(), value=value.numpy()
    )
    write_json(
        part / bundle.CONFIG,
        {
            "format": bundle.FORMAT,
            "game": game.name,
            "rules": rules.to_dict(),
            "rules_fingerprint": rules.fingerprint,
            "observation": game.schema(rules),
            "actions": bundle.action_schema(game, rules),
            "network": {**header["network"], "parameters": count_parameters(network)},
            "points_scale": config.get("points_scale"),
        },
    )
    write_json(
        part / bundle.PROVENANCE,
        {
            "algorithm": header.get("algorithm"),
            "config": {name: value for name, value in config.items() if name != "algorithm"},
            "seed": config.get("seed"),
            "steps": step,
            "run": run.name,
            "evaluation_while_training": header.get("evaluation"),
            "versions": {"python": sys.version.split()[0], **{name: _version(name) for name in LIBRARIES}},
        },
    )
    (part / bundle.SUMS).write_text(bundle.checksums(part), encoding="utf-8")
    agent = BundleAgent(part)
    agent.name = out.name
    evaluation = {
        "policy": "likeliest action",
        "matches": {
            name: {
                **game.play_match(agent, game.make(name), deals=deals, seed=seed, rules=rules).to_json(),
                "command": _command(game, out.name, name, deals, seed, rules),
            }
            for name in game.opponents
        },
    }
    write_json(part / bundle.EVAL, evaluation)
    (part / bundle.CARD).write_text(_card(out.name, game, rules, config, step, evaluation), encoding="utf-8")
    (part / bundle.SUMS).write_text(bundle.checksums(part), encoding="utf-8")
    bundle.read_config(part)
    return evaluation


def _command(game: Game, name: str, opponent: str, deals: int, seed: int, rules: Any) -> str:
    """The command that plays a match of the bundle's evaluation again."""
    which = "" if game.name == "gin" else f" --game {game.name}"
    return f"ginrummy match {name} {opponent}{which} --deals {deals} --seed {seed} --rules {rules.text}"


def _positions(game: Game, rules: Any, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks from random play: each from a hand of its own, at another depth."""
    engine = game.engine
    tables = engine.new_tables(rules, size, seed=seed)
    player = RandomAgent()
    depths = np.arange(size)
    for move in range(size):
        keys = mix_keys(seed + move, np.arange(size))
        actions = player.act(game.view.observe(tables), engine.legal(tables), keys)
        actions[move >= depths] = engine.NO_ACTION
        engine.step(tables, actions, redeal=True)
    return game.view.look(tables)


def _write_onnx(network: Network, observation: np.ndarray, mask: np.ndarray, path: Path) -> None:
    batch = torch.export.Dim("batch", min=1)
    # A batch of two: a batch of one would be taken for a constant.
    example = {"observation": torch.from_numpy(observation[:2]), "mask": torch.from_numpy(mask[:2])}
    quiet = logging.getLogger("torch.onnx")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # The exporter's own deprecations, which its next version mends.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network,
                kwargs=example,
                f=str(path),
                input_names=["observation", "mask"],
                output_names=["logits", "value"],
                dynamic_shapes={"observation": {0: batch}, "mask": {0: batch}},
                external_data=False,
                dynamo=True,
                verbose=False,
            )
    except ImportError as error:
        raise ExportError(f"export needs {error.name}; install it with: pip install 'gin-env[train,onnx]'") from None
    finally:
        quiet.setLevel(level)
    _forget_sources(path)


def _forget_sources(path: Path) -> None:
    """Takes out of a graph where its nodes came from: files and lines of the machine that exported it."""
    import onnx

    model = onnx.load(path)
    for part in (
        model,
        model.graph,
        *model.graph.node,
        *model.graph.value_info,
        *model.graph.input,
        *model.graph.output,
    ):
        del part.metadata_props[:]
        part.doc_string = ""
    onnx.save(model, path)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _card(
    name: str, game: Game, rules: Any, config: Mapping[str, Any], step: int, evaluation: Mapping[str, Any]
) -> str:
    size, actions = game.observation_size(rules), game.num_actions(rules)
    which = "" if game.name == "gin" else f', game="{game.name}"'
    times = "twice with seats exchanged"
    if game.seats(rules) > 2:
        times = "eight times: the bot alone in each seat, and its opponent alone in each seat"
    rows = "".join(
        f"| {opponent} | {match['points_per_hand']:+.2f} | {match['ci95'][0]:+.2f} to {match['ci95'][1]:+.2f} "
        f"| {match['hands_won'] / match['hands']:.1%} | `{match['command']}` |\n"
        for opponent, match in evaluation["matches"].items()
    )
    algorithm = str(config.get("algorithm"))
    method = {"ppo": "masked PPO", "dqn": "DQN", "imitate": f"imitation of {config.get('teacher')}"}.get(
        algorithm, algorithm
    )
    return f"""# {name}: a {game.title} player

Trained with gin-env ({method}, {step:,} decisions, seed {config.get("seed")}) for the rules `{rules.text}`,
fingerprint `{rules.fingerprint}`. It plays its likeliest action.

| against | points a hand | 95 % interval | hands won | command |
|---|---|---|---|---|
{rows}
Every deal was played {times}.

    import agents
    agent = agents.make("path/to/{name}"{which})

`config.json` holds rules and schemas, `provenance.json` the training config. Outside Python, run `policy.onnx`:
inputs `observation` (N, {size}) float32 and `mask` (N, {actions}) int8; outputs `logits` (N, {actions}), about -30,000
where masked (everywhere in a row whose mask is all zero), and `value` (N,), points won divided by
{config.get("points_scale")}.
"""


__all__ = ["BundleError", "ExportError", "export"]
