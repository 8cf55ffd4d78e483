"""The door for Stable-Baselines3, and the example that trains through it. E.. as in tests/test_gymnasium.py."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

import gymnasium
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecCheckNan, VecMonitor, VecNormalize

import agents
from experiments.examples import sb3_maskable_ppo
from gin_env import IllegalAction, engine
from gin_env.adapters.sb3 import GinRummyVecEnv
from gin_env.seat import GinRummyEnv
from gin_env.tables import ENDINGS

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parent.parent
ENDED = {"ending", "winner", "points", "own_deadwood", "opponent_deadwood", "turns"}


def chosen(masks: np.ndarray, move: int) -> np.ndarray:
    """Returns a legal action for each table, the same whatever else is in the batch."""
    return agents.make("random").act(np.empty(0), masks, engine.mix_keys(move, np.arange(len(masks))))


def play(env: GinRummyVecEnv, steps: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]]:
    env.reset()
    return [env.step(chosen(env.action_masks(), move)) for move in range(steps)]


# ---------------------------------------------------------------------------------------------------------- playing


def test_it_plays_as_the_single_environments_do() -> None:
    """Seeds, deals, opponents, rewards, ends and last observations are those of the environments of one table."""
    size = 6
    batch = GinRummyVecEnv(size, opponent="agents:random", seed=40)
    single = DummyVecEnv([lambda: GinRummyEnv(opponent="agents:random") for _ in range(size)])
    single.seed(40)
    assert (batch.reset() == single.reset()).all()
    ends = 0
    for move in range(400):
        masks = get_action_masks(batch)
        assert (masks == get_action_masks(single)).all()
        actions = chosen(masks, move)
        ours, theirs = batch.step(actions), single.step(actions)
        for one, other in zip(ours[:3], theirs[:3], strict=True):
            assert one.dtype == other.dtype
            assert (one == other).all()
        for done, one, other in zip(ours[2], ours[3], theirs[3], strict=True):
            if not done:
                assert one == {}
                continue
            ends += 1
            assert (one.pop("terminal_observation") == other.pop("terminal_observation")).all()
            assert set(one) == ENDED | {"TimeLimit.truncated", "episode"}
            assert all(one[name] == other[name] and type(one[name]) is type(other[name]) for name in ENDED)
            assert one["TimeLimit.truncated"] is other["TimeLimit.truncated"]
    assert ends > 2 * size


def test_episodes_are_counted_as_vec_monitor_counts_them() -> None:
    size = 8
    env, twin = (GinRummyVecEnv(size, reward_scale=0.05, seed=3) for _ in range(2))
    monitor = VecMonitor(twin)
    assert (env.reset() == monitor.reset()).all()
    seen = 0
    for move in range(300):
        actions = chosen(env.action_masks(), move)
        rewards, dones, infos = env.step(actions)[1:]
        counted = monitor.step(actions)[3]
        for row in np.flatnonzero(dones):
            mine, theirs = infos[row]["episode"], counted[row]["episode"]
            assert set(mine) == set(theirs)
            assert (mine["r"], mine["l"]) == (pytest.approx(theirs["r"]), theirs["l"])
            # A hand pays at its end.
            assert mine["r"] == rewards[row] == np.float32(0.05 * infos[row]["winner"] * infos[row]["points"])
            seen += 1
    assert seen > size


def test_truncation() -> None:
    env = GinRummyVecEnv(8, rules="cardpuzzle:draw_cap=12", seed=1)
    infos = [info for _, _, _, batch in play(env, 200) for info in batch if "episode" in info]
    assert {info["ending"] for info in infos} > {"truncated"}
    for info in infos:
        assert info["TimeLimit.truncated"] == (info["ending"] == "truncated")
        assert info["terminal_observation"].shape == env.observation_space.shape


def test_matches() -> None:
    env = GinRummyVecEnv(4, rules="cardpuzzle:target=30", match=True, seed=2)
    hands = matches = 0
    for _, _, dones, infos in play(env, 600):
        for done, info in zip(dones, infos, strict=True):
            if "ending" in info:
                hands += 1
                assert info["ending"] in ENDINGS
                assert (info["match_winner"] != 0) == done
            matches += done
            assert ("episode" in info) == done
    assert hands > matches > 4


def test_an_illegal_action_is_refused_and_changes_nothing() -> None:
    env = GinRummyVecEnv(3, seed=5)
    env.reset()
    masks = env.action_masks()
    actions = chosen(masks, 0)
    wrong = actions.copy()
    wrong[1] = np.flatnonzero(masks[1] == 0)[0]
    with pytest.raises(IllegalAction):
        env.step(wrong)
    assert (env.action_masks() == masks).all()
    env.step(actions)


def test_seeds() -> None:
    def first(env: GinRummyVecEnv) -> np.ndarray:
        return np.concatenate([env.reset(), *(step[0] for step in play(env, 20))])

    one, again = GinRummyVecEnv(3, seed=7), GinRummyVecEnv(3)
    assert again.seed(7) == [7, 8, 9]
    assert (first(one) == first(again)).all()
    # A seed is used once: the next reset goes on with other deals.
    assert (one.reset() != GinRummyVecEnv(3, seed=7).reset()).any()
    assert (GinRummyVecEnv(3).reset() != GinRummyVecEnv(3).reset()).any()
    for seed in (-1, 1 << 64):
        with pytest.raises(ValueError, match="seed is"):
            one.seed(seed)


def test_given_deals() -> None:
    env = GinRummyVecEnv(2, seed=1)
    deck = np.random.default_rng(0).permutation(52)
    env.set_options({"deck": deck, "dealer": 1})
    one, other = env.reset()
    assert (one == other).all()
    assert (env.reset()[0] != one).any()  # used once
    env.set_options([{"deck": deck}, {}])
    with pytest.raises(ValueError, match="1 of 2 tables are given a deck"):
        env.reset()


# ------------------------------------------------------------------------------------------------ the door's handles


def test_masks() -> None:
    env = GinRummyVecEnv(5, seed=1)
    env.reset()
    masks = env.action_masks()
    assert masks.shape == (5, env.action_space.n)
    assert masks.any(axis=1).all()
    assert is_masking_supported(env)
    assert is_masking_supported(VecMonitor(env))
    assert (get_action_masks(VecMonitor(env)) == masks).all()
    assert [mask.tolist() for mask in env.env_method("action_masks", indices=[4, 1])] == masks[[4, 1]].tolist()
    assert [ask().tolist() for ask in env.get_attr("action_masks", indices=2)] == [masks[2].tolist()]
    masks[:] = 0  # a copy
    assert env.action_masks().any()


def test_attributes() -> None:
    env = GinRummyVecEnv(3, opponent="agents:random")
    assert env.get_attr("rules") == [env.rules] * 3
    assert [one.name for one in env.get_attr("opponent", indices=[0, 1])] == ["random"] * 2
    assert env.has_attr("rules")
    assert not env.has_attr("tables")
    with pytest.raises(AttributeError, match="no attribute 'spec'"):
        env.get_attr("spec")
    with pytest.raises(AttributeError, match="no method 'step'"):
        env.env_method("step")
    assert env.env_is_wrapped(Monitor) == [False] * 3

    env.set_attr("opponent", "agents:greedy")
    assert env.opponent.name == "greedy"  # type: ignore[attr-defined]
    env.set_attr("reward_scale", 0.1)
    assert env.get_attr("reward_scale", indices=0) == [0.1]
    with pytest.raises(AttributeError, match="'rules' cannot be set"):
        env.set_attr("rules", "plus20")
    with pytest.raises(ValueError, match="the same at all tables"):
        env.set_attr("opponent", "agents:random", indices=[0])
    for wrong in (0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="reward_scale is"):
            env.set_attr("reward_scale", wrong)
    with pytest.raises(ValueError, match="reward_scale is 0"):
        GinRummyVecEnv(1, reward_scale=0)


def test_rendering() -> None:
    env = GinRummyVecEnv(2, render_mode="ansi", seed=1)
    env.reset()
    texts = env.env_method("render")
    assert len(texts) == 2
    assert env.render() == env.render("ansi") == "\n".join(texts)
    pytest.importorskip("PIL")
    env = GinRummyVecEnv(2, render_mode="rgb_array", seed=1)
    env.reset()
    one, other = env.get_images()
    assert (one != other).any()
    assert (env.render()[:640] == one).all()
    env.close()


def test_without_the_library() -> None:
    code = "import sys; sys.modules['stable_baselines3'] = None\nimport gin_env.adapters\nimport gin_env.adapters.sb3"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    line = done.stderr.splitlines()[-1]
    assert line.startswith('ImportError: gin_env.adapters.sb3 needs stable-baselines3: pip install "gin-env[sb3]"')


# --------------------------------------------------------------------------------------------- Stable-Baselines3's


def test_its_checks_pass() -> None:
    check_env(GinRummyEnv(), skip_render_check=False)
    check_env(gymnasium.make("gin_env/GinRummy-v0", match=True).unwrapped)
    env = VecCheckNan(VecNormalize(GinRummyVecEnv(4, seed=1), norm_obs=False), raise_exception=True)
    env.reset()
    for move in range(50):
        env.step(chosen(get_action_masks(env), move))


def test_a_model_learns_is_saved_and_goes_on(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    env = GinRummyVecEnv(8, opponent="agents:random", reward_scale=0.05)
    settings: dict[str, Any] = {"n_steps": 64, "batch_size": 128, "n_epochs": 1, "seed": 1, "device": "cpu"}
    model = MaskablePPO("MlpPolicy", env, **settings)
    before = model.policy.state_dict()["action_net.weight"].clone()
    model.learn(1024)
    assert (model.policy.state_dict()["action_net.weight"] != before).any()
    assert len(model.ep_info_buffer) > 0  # type: ignore[arg-type]
    model.save(tmp_path / "model")
    loaded = MaskablePPO.load(tmp_path / "model", env=env, device="cpu")
    loaded.learn(512, reset_num_timesteps=False)
    assert loaded.num_timesteps == 1536
    returns, lengths = evaluate_policy(
        loaded, VecMonitor(GinRummyVecEnv(4, seed=9)), n_eval_episodes=6, return_episode_rewards=True
    )
    assert len(returns) == len(lengths) == 6

    # The same seed trains the same model.
    again = MaskablePPO("MlpPolicy", GinRummyVecEnv(8, opponent="agents:random", reward_scale=0.05), **settings)
    again.learn(1024)
    assert all(torch.equal(model.policy.state_dict()[name], value) for name, value in again.policy.state_dict().items())


# --------------------------------------------------------------------------------------------------------- example


def test_the_example_learns(capsys: pytest.CaptureFixture[str]) -> None:
    """A taste of it: noise wins a hand in fifty, this some in a hundred more."""
    result = sb3_maskable_ppo.main(decisions=45_000, deals=200)
    assert result.hands_won / 400 > 0.05
    assert "% of the hands won" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_wins_nine_hands_of_ten() -> None:
    result = sb3_maskable_ppo.main()
    assert result.hands_won / (2 * result.deals) >= 0.9
