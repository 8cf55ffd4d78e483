"""Exported bundles: what is in them, that they play as the network does, and how damaged ones are refused."""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")
pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

import onnx
import safetensors.numpy
import torch

import agents
import training.export
from agents import bundle
from agents.bundle import BundleAgent, BundleError
from agents.games import Gin
from agents.networks import MASKED, Network, build_network
from agents.neural import NeuralAgent
from experiments.cli import main
from gin_env import engine
from gin_env.rules import preset
from gin_env.seat import GinRummyEnv
from gin_env.tables import OVER, THROW
from gin_env.view import OBSERVATION_SIZE, look, observe
from tests.test_agents import keys, played
from tests.test_training import TINY, UPDATE, changed
from training.checkpoint import CHECKPOINT, CheckpointError, load_checkpoint, load_network, save_checkpoint
from training.export import ExportError, export
from training.ppo import train

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "policy.onnx",
    "policy.safetensors",
    "config.json",
    "provenance.json",
    "eval.json",
    "golden.npz",
    "README.md",
    "SHA256SUMS",
}
DEALS = 6


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "run"
    train(changed(total_steps=2 * UPDATE), folder)
    return folder


@pytest.fixture(scope="session")
def exported(run: Path) -> Path:
    """The bundle of a tiny run. Not to be changed."""
    out = run.parent / "tiny"
    export(run, out, deals=DEALS)
    return out


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    """The bundle again, to be damaged."""
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.fixture(scope="session")
def network(run: Path) -> Network:
    """The network of the run's checkpoint."""
    tensors, header = load_checkpoint(run / CHECKPOINT)
    net = build_network(header["network"]["name"], header["network"]["settings"])
    load_network(net, tensors)
    return net


@pytest.fixture(scope="session")
def positions() -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks of 256 positions of all phases."""
    rows = [look(played("cardpuzzle", 32, steps, seed=steps)) for steps in (0, 1, 2, 7, 14, 23, 30, 37)]
    observations, masks = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return observations, masks


@torch.inference_mode()
def by_torch(network: Network, observations: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    logits, values = network(torch.from_numpy(observations), torch.from_numpy(masks))
    return logits.numpy(), values.numpy()


def probabilities(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def renew_sums(folder: Path) -> None:
    (folder / bundle.SUMS).write_text(bundle.checksums(folder))


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes a bundle's config and its checksum, as one who knows how might."""
    path = folder / bundle.CONFIG
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))
    renew_sums(folder)


def refused(folder: Path, says: str) -> None:
    """The agent is refused in one line that names the bundle."""
    for load in (lambda: BundleAgent(folder), lambda: agents.make(str(folder))):
        with pytest.raises(BundleError, match=says) as caught:
            load()
        assert "\n" not in str(caught.value)
        assert str(folder) in str(caught.value)


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------------------------------------------- what is in it


def test_files_and_checksums(exported: Path) -> None:
    assert set(leftovers(exported)) == set(bundle.FILES) == FILES
    lines = (exported / "SHA256SUMS").read_text().splitlines()
    assert [line.split("  ")[1] for line in lines] == sorted(FILES - {"SHA256SUMS"})
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((exported / name).read_bytes()).hexdigest() == digest
    # Nothing hidden was left beside it, and everyone may read it.
    assert leftovers(exported.parent) == ["run", "tiny"]
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in [exported, *exported.iterdir()])


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum program")
def test_the_sha256sum_program_agrees(exported: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=exported, check=True)


def test_config_provenance_and_evaluation(exported: Path, network: Network) -> None:
    config = bundle.read_config(exported)
    rules = preset("cardpuzzle")
    assert config["rules"] == rules.to_dict()
    assert config["rules_fingerprint"] == rules.fingerprint
    assert config["network"]["settings"] == network.settings
    assert config["points_scale"] == TINY.points_scale
    assert config["actions"]["names"][107] == "big-gin"

    provenance = json.loads((exported / "provenance.json").read_text())
    assert provenance["config"] == json.loads(json.dumps(changed(total_steps=2 * UPDATE).to_dict()))
    assert (provenance["seed"], provenance["steps"]) == (1, 2 * UPDATE)
    assert provenance["versions"]["torch"] == torch.__version__
    # Where it was made is nobody's business.
    assert str(exported.parent) not in "".join(
        path.read_text() for path in exported.iterdir() if path.suffix in (".json", ".md")
    )

    evaluation = json.loads((exported / "eval.json").read_text())
    card = (exported / "README.md").read_text()
    assert set(evaluation["matches"]) == {"random", "greedy", "gin-only", "early-knock"}
    for name, match in evaluation["matches"].items():
        low, high = match["ci95"]
        assert low <= match["points_per_hand"] <= high
        assert match["deals"] == DEALS
        assert match["command"].startswith(f"ginrummy match tiny {name} --deals {DEALS} --seed ")
        assert f"| {name} | {match['points_per_hand']:+.2f} |" in card
        assert match["command"] in card
    assert evaluation["matches"]["random"]["points_per_hand"] > 0


def test_the_weights_are_those_of_the_checkpoint(exported: Path, network: Network) -> None:
    weights = safetensors.numpy.load_file(exported / "policy.safetensors")
    assert weights.keys() == network.state_dict().keys()
    for name, weight in network.state_dict().items():
        assert (weights[name] == weight.numpy()).all(), name


def test_nothing_in_it_is_pickled(exported: Path) -> None:
    with np.load(exported / "golden.npz", allow_pickle=False) as golden:
        assert {name: golden[name].dtype.str for name in golden.files} == {
            "observation": "<f4",
            "mask": "|i1",
            "logits": "<f4",
            "value": "<f4",
        }
    for path in exported.iterdir():
        assert not path.read_bytes().startswith(b"\x80"), path.name
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                assert all(name.endswith(".npy") for name in archive.namelist())


def test_golden_rows_are_of_many_kinds(exported: Path) -> None:
    with np.load(exported / "golden.npz", allow_pickle=False) as golden:
        masks = golden["mask"]
    assert masks.any(axis=1).all()
    assert (masks[:, 0] == 1).any()
    assert (masks[:, 1] == 1).any()
    assert (masks[:, 3:55].any(axis=1)).any()


# ------------------------------------------------------------------------------------------------ the policy in onnx


@pytest.mark.parametrize("size", [1, 7, 256])
def test_t13_the_policy_is_that_of_torch(
    exported: Path, network: Network, positions: tuple[np.ndarray, np.ndarray], size: int
) -> None:
    agent = BundleAgent(exported)
    for first in range(0, 256, size):
        observations, masks = (rows[first : first + size] for rows in positions)
        logits, values = agent.evaluate(observations, masks)
        wanted, wanted_values = by_torch(network, observations, masks)
        assert logits.shape == masks.shape
        assert logits.dtype == values.dtype == np.float32
        assert abs(probabilities(logits) - probabilities(wanted)).max() < 1e-5
        np.testing.assert_allclose(values, wanted_values, atol=1e-5)
        chosen = logits.argmax(axis=1)
        assert (chosen == wanted.argmax(axis=1)).all()
        assert masks[np.arange(len(masks)), chosen].all()
        assert (probabilities(logits)[masks == 0] == 0).all()


def test_t13_one_legal_action_and_none(
    exported: Path, network: Network, positions: tuple[np.ndarray, np.ndarray]
) -> None:
    observations, masks = (rows[:257].copy() for rows in positions)
    single, none = 3, 5
    masks[[single, none]] = 0
    masks[single, 77] = 1
    logits, values = BundleAgent(exported).evaluate(observations, masks)
    assert probabilities(logits)[single, 77] == 1
    # Documented in the bundle's card: about -30,000 everywhere.
    assert (logits[none] == MASKED).all()
    assert np.isfinite(logits).all()
    assert np.isfinite(values).all()
    wanted, _ = by_torch(network, observations, masks)
    assert abs(probabilities(logits) - probabilities(wanted)).max() < 1e-5


def test_t13_nothing_is_sampled_inside_the_graph(exported: Path, positions: tuple[np.ndarray, np.ndarray]) -> None:
    model = onnx.load(exported / "policy.onnx", load_external_data=False)
    nodes = [node for graph in (model.graph, *model.functions) for node in graph.node]
    kinds = {node.op_type for node in nodes}
    assert "Where" in kinds
    assert not {kind for kind in kinds if "Random" in kind or kind in ("Multinomial", "Bernoulli", "Dropout")}
    # The weights lie in this file, not in another beside it.
    assert not any(weight.external_data for weight in model.graph.initializer)
    assert [entry.name for entry in model.graph.input] == ["observation", "mask"]
    assert [entry.name for entry in model.graph.output] == ["logits", "value"]
    assert model.graph.input[1].type.tensor_type.elem_type == onnx.TensorProto.INT8
    for entry in (*model.graph.input, *model.graph.output):
        assert entry.type.tensor_type.shape.dim[0].dim_param, f"the batch of {entry.name} is fixed"

    agent = BundleAgent(exported)
    one, again = agent.evaluate(*positions), agent.evaluate(*positions)
    assert (one[0] == again[0]).all()


# -------------------------------------------------------------------------------------------------------- playing it


def test_a_flat_network_is_exported_too(tmp_path: Path, positions: tuple[np.ndarray, np.ndarray]) -> None:
    train(changed(total_steps=UPDATE, network="mlp"), tmp_path / "run")
    export(tmp_path / "run", tmp_path / "flat", deals=2)
    assert bundle.read_config(tmp_path / "flat")["network"]["name"] == "mlp"
    tensors, header = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    net = build_network("mlp", header["network"]["settings"])
    load_network(net, tensors)
    logits, values = BundleAgent(tmp_path / "flat").evaluate(*positions)
    wanted, wanted_values = by_torch(net, *positions)
    np.testing.assert_allclose(logits, wanted, atol=1e-4)
    np.testing.assert_allclose(values, wanted_values, atol=1e-4)


def test_the_agent(exported: Path, network: Network) -> None:
    agent = agents.make(str(exported))
    assert isinstance(agent, BundleAgent)
    assert isinstance(agent, agents.Agent)
    assert agent.name == "tiny"
    assert agent.rules == preset("cardpuzzle")
    t = played("cardpuzzle", 200, 23)
    views, masks = observe(t), engine.legal(t)
    chosen = agent.act(views, masks, keys(200))
    assert chosen.dtype == np.int64
    assert (chosen == NeuralAgent(network).act(views, masks, keys(200))).all()


@pytest.mark.parametrize("options", ["", ":sample=1"])
def test_t14_a_bundle_plays_a_thousand_hands(exported: Path, options: str) -> None:
    agent, greedy = agents.make(f"{exported}{options}"), agents.make("greedy")
    t = engine.new_tables("cardpuzzle", 1000, seed=5)
    learner = np.arange(1000) % 2
    for move in range(500):
        rows = np.flatnonzero(t["phase"] != OVER)
        if not rows.size:
            break
        some = t[rows]
        views, masks = observe(some), engine.legal(some)
        rng = engine.mix_keys(move, rows)
        chosen = agent.act(views, masks, rng)
        assert masks[np.arange(rows.size), chosen].all()
        actions = np.full(1000, engine.NO_ACTION)
        actions[rows] = np.where(some["mover"] == learner[rows], chosen, greedy.act(views, masks, rng))
        engine.step(t, actions)
    assert (t["phase"] == OVER).all()


def test_sampling(exported: Path, network: Network) -> None:
    count = 20_000
    t = played("cardpuzzle", 64, 21)
    t = t[t["phase"] == THROW][:1]
    views, masks = np.repeat(observe(t), count), np.repeat(engine.legal(t), count, axis=0)
    wanted = probabilities(by_torch(network, *look(t))[0])[0]
    chosen = agents.make(f"{exported}:sample=1").act(views, masks, keys(count, seed=3))
    counts = np.bincount(chosen, minlength=wanted.size)
    assert counts[wanted == 0].sum() == 0
    # Actions too unlikely for the test are counted together.
    common = count * wanted > 5
    seen = [*counts[common], counts[~common].sum()]
    expected = [*count * wanted[common], count * wanted[~common].sum()]
    assert common.sum() > 1
    if expected[-1] < 1:
        assert seen.pop() < 8
        expected.pop()
    assert stats.chisquare(seen, np.array(expected) * sum(seen) / sum(expected)).pvalue > 1e-4
    # Without the option the same action every time.
    assert len(set(agents.make(str(exported)).act(views[:50], masks[:50], keys(50)))) == 1


PLAY_WITHOUT_TORCH = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "safetensors", "onnx", "onnxscript", "tensorboard"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
import agents
from gin_env import engine
from gin_env.view import observe

players = agents.make(sys.argv[1]), agents.make("greedy")
t = engine.new_tables("cardpuzzle", 20, seed=3)
over = np.zeros(20, dtype=bool)
for move in range(500):
    views, masks, keys = observe(t), engine.legal(t), engine.mix_keys(move, np.arange(20))
    masks[over, 0] = 1  # somebody has to choose something; it is not played
    chosen = np.where(t["mover"] == 0, *(player.act(views, masks, keys) for player in players))
    chosen[over] = engine.NO_ACTION
    over |= engine.step(t, chosen)[1] > 0
    if over.all():
        break
assert over.all()
assert "torch" not in sys.modules
print("played", int(over.sum()), "hands as", players[0].name)
"""


def test_it_plays_without_torch(exported: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLAY_WITHOUT_TORCH, str(exported)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "played 20 hands as tiny\n"


def test_without_onnxruntime_it_says_what_to_install(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    refused(exported, r"needs onnxruntime; install it with: pip install 'gin-env\[onnx\]'")


def test_options(exported: Path) -> None:
    assert agents.make(f"{exported}:sample=0,threads=1").name == "tiny"
    with pytest.raises(ValueError, match="speed"):
        agents.make(f"{exported}:speed=3")


def test_other_rules_at_the_table_are_refused(exported: Path) -> None:
    agent = BundleAgent(exported)
    t = engine.new_tables("plus20", 4)
    says = r"bundle tiny was trained for rules 'cardpuzzle' with big_gin_bonus=31, .* table plays big_gin_bonus=-1"
    with pytest.raises(BundleError, match=says):
        agent.act(observe(t), engine.legal(t), keys(4))
    t = engine.new_tables(preset("cardpuzzle", knock_limit=5), 4)
    with pytest.raises(BundleError, match=r"knock_limit=10, and this table plays knock_limit=5"):
        agent.act(observe(t), engine.legal(t), keys(4))


def test_rules_between_hands_do_not_matter(exported: Path) -> None:
    agent = BundleAgent(exported)
    for changes in ({"target": 250}, {"first_dealer": 1}, {"next_dealer": "winner"}):
        t = engine.new_tables(preset("cardpuzzle", **changes), 4)
        assert engine.legal(t)[np.arange(4), agent.act(observe(t), engine.legal(t), keys(4))].all()


# -------------------------------------------------------------------------------------------------- damaged bundles


@pytest.mark.parametrize("name", sorted(FILES - {"SHA256SUMS"}))
def test_a_corrupted_file_is_named(copy: Path, name: str) -> None:
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(data)
    refused(copy, rf"{name} is damaged \(sha256 ")


@pytest.mark.parametrize("name", sorted(FILES - {"SHA256SUMS"}))
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    refused(copy, f"lacks {name}, which SHA256SUMS names")


@pytest.mark.parametrize("name", ["policy.onnx", "config.json", "golden.npz"])
def test_a_file_missing_from_the_checksums_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    renew_sums(copy)
    refused(copy, f"SHA256SUMS does not name {name}")


def test_a_folder_that_is_no_bundle(tmp_path: Path) -> None:
    refused(tmp_path, "is no bundle: it has no SHA256SUMS")
    with pytest.raises(BundleError, match="there is no bundle folder"):
        BundleAgent(tmp_path / "nothing")
    (tmp_path / "SHA256SUMS").write_text("not a checksum\n")
    refused(tmp_path, "SHA256SUMS cannot be read")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.update(format=2), "has format 2; this library reads format 1"),
        (lambda c: c["observation"].update(version=9), "observation schema: version: 9 in the bundle and 1 here"),
        (
            lambda c: c["observation"]["planes"].__setitem__(2, "mood"),
            "another observation schema: planes: entry 2 is 'mood' in the bundle and 'opponent_known' here",
        ),
        (lambda c: c["observation"]["scalars"].pop(), "observation schema: scalars: .* in the bundle and .* here"),
        (
            lambda c: c["observation"].pop("size"),
            f"another observation schema: size: None in the bundle and {OBSERVATION_SIZE} here",
        ),
        (lambda c: c["actions"].update(version=0), "another action schema: version: 0 in the bundle and 1 here"),
        (
            lambda c: c["actions"]["names"].__setitem__(0, "fold"),
            "another action schema: names: entry 0 is 'fold' in the bundle and 'pass' here",
        ),
        (
            lambda c: c["rules"].update(gin_bonus=20),
            f"another rules fingerprint: '{preset('cardpuzzle').fingerprint}' in the bundle and "
            f"'{preset('cardpuzzle', gin_bonus=20).fingerprint}' here",
        ),
        (lambda c: c.update(rules_fingerprint="0" * 16), "another rules fingerprint: '0000000000000000' in the bundle"),
        (lambda c: c["rules"].update(jokers=2), "config.json cannot be read: rules: unknown field 'jokers'"),
        (lambda c: c["rules"].update(ranks=99), "config.json cannot be read: rules: ranks is 99"),
        (lambda c: c.pop("rules"), "config.json cannot be read: 'rules'"),
        (lambda c: c.pop("format"), "config.json cannot be read: 'format'"),
        (lambda c: c.update(observation=None), "another observation schema: None in the bundle"),
    ],
)
def test_another_schema_or_other_rules_are_named(
    copy: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    edit(copy, change)
    refused(copy, says)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "\xff"])
def test_a_config_that_is_none(copy: Path, text: str) -> None:
    (copy / "config.json").write_bytes(text.encode("latin-1"))
    renew_sums(copy)
    refused(copy, "config.json cannot be read")


@pytest.mark.parametrize("data", [b"", b"noise", None])
def test_a_policy_that_is_none(copy: Path, data: bytes | None) -> None:
    policy = copy / "policy.onnx"
    policy.write_bytes(policy.read_bytes()[:5000] if data is None else data)
    renew_sums(copy)
    refused(copy, "policy.onnx cannot be loaded")


def rewrite_golden(folder: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    with np.load(folder / "golden.npz", allow_pickle=False) as golden:
        rows = {name: golden[name] for name in golden.files}
    change(rows)
    np.savez_compressed(folder / "golden.npz", **rows)
    renew_sums(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda g: g.update(logits=g["logits"] + np.float32(0.01)), "does not reproduce its golden rows: off by 0.01"),
        (lambda g: g.update(value=g["value"] + np.float32(0.5)), "does not reproduce its golden rows: off by 0.5"),
        (lambda g: g.update(value=g["value"] * np.float32(np.nan)), "does not reproduce its golden rows: off by nan"),
        (lambda g: g.pop("logits"), "golden.npz cannot be played"),
        (lambda g: g.update(logits=g["logits"][:, :9]), "golden.npz cannot be played"),
        (lambda g: g.update(observation=g["observation"][:, :9]), "golden.npz cannot be played"),
        (lambda g: g.update(mask=g["mask"].astype(np.float64)), "golden.npz cannot be played"),
        (lambda g: g.update({name: rows[:0] for name, rows in g.items()}), "golden.npz cannot be played"),
    ],
)
def test_golden_rows_that_are_not_reproduced(
    copy: Path, change: Callable[[dict[str, np.ndarray]], object], says: str
) -> None:
    rewrite_golden(copy, change)
    refused(copy, says)


def test_another_network_with_the_same_golden_rows(copy: Path, network: Network) -> None:
    """A mix of two exports shows, even where every file by itself is whole."""
    torch.manual_seed(9)
    other = build_network("suits", network.settings)
    with np.load(copy / "golden.npz", allow_pickle=False) as golden:
        observations, masks = golden["observation"], golden["mask"]
    training.export._write_onnx(other, observations, masks, copy / "policy.onnx")
    renew_sums(copy)
    refused(copy, "does not reproduce its golden rows")


def test_its_version_says_which_bundle_it_is(exported: Path, copy: Path) -> None:
    version = BundleAgent(exported).version
    assert version.startswith("bundle ")
    assert BundleAgent(copy).version == version
    (copy / "README.md").write_text("another")
    renew_sums(copy)
    assert BundleAgent(copy).version != version


@pytest.mark.parametrize("kept", [0, 2000, -30])
def test_golden_rows_that_were_cut_off(copy: Path, kept: int) -> None:
    golden = copy / "golden.npz"
    golden.write_bytes(golden.read_bytes()[:kept])
    renew_sums(copy)
    refused(copy, "golden.npz cannot be played")


def test_pickled_golden_rows_are_refused(copy: Path) -> None:
    """To load a bundle runs no code of its maker."""
    fired = copy.parent / "fired"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(fired),)

    trap = np.empty(1, dtype=object)
    trap[0] = Trap()
    np.savez(copy / "golden.npz", observation=trap, mask=trap, logits=trap, value=trap)
    renew_sums(copy)
    refused(copy, "golden.npz cannot be played")
    np.save(copy / "golden.npy", trap)
    (copy / "golden.npy").rename(copy / "golden.npz")
    renew_sums(copy)
    refused(copy, "golden.npz cannot be played")
    assert not fired.exists()


# ------------------------------------------------------------------------------------------------------- exporting


def test_a_bundle_as_the_opponent_of_the_environments(exported: Path) -> None:
    env = GinRummyEnv(opponent=f"agents:{exported}")
    env.reset(seed=1)
    again = pickle.loads(pickle.dumps(env))
    for _ in range(10):
        action = env.action_space.sample()
        ours, theirs = env.step(action), again.step(action)
        assert np.array_equal(ours[0], theirs[0])
        if ours[2] or ours[3]:
            break


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, exported: Path) -> None:
    """Takes the evaluation and the graph from the bundle that is there, for tests of what happens around them."""

    def write(network: Network, observation: np.ndarray, mask: np.ndarray, path: Path) -> None:
        shutil.copy(exported / "policy.onnx", path)

    monkeypatch.setattr(training.export, "_write_onnx", write)


def test_two_exports_are_alike(run: Path, exported: Path, tmp_path: Path) -> None:
    evaluation = export(run, tmp_path / "tiny", deals=DEALS)
    assert json.loads((tmp_path / "tiny" / "eval.json").read_text()) == json.loads(json.dumps(evaluation))
    there = json.loads((exported / "eval.json").read_text())
    for match in (*evaluation["matches"].values(), *there["matches"].values()):
        del match["speed"]
    assert json.loads(json.dumps(evaluation)) == there
    for name in FILES - {"eval.json", "policy.onnx", "SHA256SUMS"}:
        assert (tmp_path / "tiny" / name).read_bytes() == (exported / name).read_bytes(), name


@pytest.mark.usefixtures("quick")
def test_an_older_bundle_is_replaced(run: Path, copy: Path) -> None:
    (copy / "policy.onnx").write_text("damaged")
    export(run, copy, deals=DEALS)
    assert set(leftovers(copy)) == FILES
    assert leftovers(copy.parent) == ["copy"]
    BundleAgent(copy)


@pytest.mark.usefixtures("quick")
def test_an_empty_folder_is_filled(run: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    export(run, tmp_path / "out", deals=DEALS)
    assert set(leftovers(tmp_path / "out")) == FILES


def test_a_folder_that_is_no_bundle_is_left_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat").write_text("x")
    (tmp_path / "photos" / "SHA256SUMS").write_text("x")
    (tmp_path / "file").write_text("x")
    for name in ("photos", "file"):
        with pytest.raises(ExportError, match=f"{name} exists and is no bundle; choose another --out"):
            export(run, tmp_path / name, deals=DEALS)
    assert leftovers(tmp_path) == ["file", "photos"]
    assert (tmp_path / "photos" / "cat").read_text() == (tmp_path / "file").read_text() == "x"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fails", ["_write_onnx", "save_file", "write_json", "play_match", "_card"])
@pytest.mark.parametrize("older", [False, True], ids=["new", "replacing"])
def test_nothing_half_written_is_left(
    run: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, older: bool
) -> None:
    out = tmp_path / "out"
    if older:
        shutil.copytree(exported, out)

    def fail(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Gin if fails == "play_match" else training.export, fails, fail)
    with pytest.raises(ExportError, match="cannot write .*out: No space left on device"):
        export(run, out, deals=DEALS)
    assert leftovers(tmp_path) == (["out"] if older else [])
    if older:
        assert bundle.checksums(out) == bundle.checksums(exported)
        BundleAgent(out)


@pytest.mark.usefixtures("quick")
def test_a_fault_leaves_nothing_either(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(training.export, "_card", fail)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        export(run, tmp_path / "out", deals=DEALS)
    assert leftovers(tmp_path) == []


@pytest.mark.usefixtures("quick")
def test_one_deal_has_no_interval(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="deals is 1; expected at least 2"):
        export(run, tmp_path / "out", deals=1)
    assert leftovers(tmp_path) == []


@pytest.mark.usefixtures("quick")
def test_the_command_says_how_many_deals(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["export", str(run), "--out", str(out), "--deals"]
    assert main([*words, "1"]) == 2
    assert "deals is 1; expected at least 2" in capsys.readouterr().err
    assert not out.exists()
    assert main([*words, "3"]) == 0
    matches = json.loads((out / "eval.json").read_text())["matches"]
    assert {match["deals"] for match in matches.values()} == {3}
    assert "--deals 3 --seed" in (out / "README.md").read_text()


def test_a_place_that_cannot_be_written(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ExportError, match="cannot write"):
        export(run, tmp_path / "file" / "out", deals=DEALS)
    assert leftovers(tmp_path) == ["file"]


def test_a_run_that_cannot_be_exported(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(CheckpointError, match="holds no run"):
        export(tmp_path, out)
    broken = Path(shutil.copytree(run, tmp_path / "broken"))
    tensors, header = load_checkpoint(run / CHECKPOINT)
    for key in ("rules", "network", "step"):
        save_checkpoint(broken / CHECKPOINT, tensors, {name: value for name, value in header.items() if name != key})
        with pytest.raises(CheckpointError, match=f"is damaged: '{key}'"):
            export(broken, out)
    settings = {**header["network"]["settings"], "width": 8}
    save_checkpoint(broken / CHECKPOINT, tensors, {**header, "network": {"name": "suits", "settings": settings}})
    with pytest.raises(CheckpointError, match="weights do not fit"):
        export(broken, out)
    (broken / CHECKPOINT).unlink()
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        export(broken, out)
    assert leftovers(tmp_path) == ["broken"]


def test_without_the_exporter_it_says_what_to_install(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*args: Any, **options: Any) -> None:
        raise ModuleNotFoundError("No module named 'onnxscript'", name="onnxscript")

    monkeypatch.setattr(torch.onnx, "export", absent)
    with pytest.raises(ExportError, match=r"export needs onnxscript; .*gin-env\[train,onnx\]"):
        export(run, tmp_path / "out", deals=DEALS)
    assert leftovers(tmp_path) == []
