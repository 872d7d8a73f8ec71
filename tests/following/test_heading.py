import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from humanoid_walks import recorded

from compdiffuser.domains.body import BODIES, rotated, true_heading, turned, up_vector
from compdiffuser.following.heading import (
    HeadingConfig,
    HeadingEstimator,
    HeadingNetwork,
    HeadingTrack,
    levelled,
    load_heading,
    rotations,
)  # fmt: skip
from compdiffuser.following.heading_training import measure_heading, train_heading
from compdiffuser.presets import preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError

HUMANOID = BODIES["humanoid"]
MEDIUM = preset("humanoidmaze-medium-stitch-v0")
SMALL = HeadingConfig(hidden=(64, 64))


@pytest.fixture(scope="module")
def walks():
    return recorded()


def degrees(found, true) -> np.ndarray:
    return np.degrees(np.abs(np.angle(np.exp(1j * (np.asarray(found) - np.asarray(true))))))


def tumbling(steps: int, bodies: int = 5, seed: int = 0):
    """Bodies that turn about changing axes: verticals and angular velocities as they see them, and headings."""
    rng = np.random.default_rng(seed)
    quaternion = rng.normal(size=(bodies, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
    phase, speed = rng.uniform(0, 6, (2, bodies, 3))
    for step in range(steps):
        spin = 2 * np.sin(phase + 0.02 * speed * step)  # in the body's frame
        yield up_vector(quaternion), spin, true_heading(np.concatenate([np.zeros((bodies, 3)), quaternion], 1))
        for part in range(10):  # finely, as a simulator does
            later = 2 * np.sin(phase + 0.02 * speed * (step + (part + 0.5) / 10))
            turn = later * HUMANOID.step_seconds / 20
            half = np.concatenate([np.ones((bodies, 1)), turn], axis=1)
            quaternion = product(quaternion, half / np.linalg.norm(half, axis=1, keepdims=True))


def product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of quaternions [n, 4]."""
    a, b = first[:, :1], second[:, :1]
    u, v = first[:, 1:], second[:, 1:]
    return np.concatenate([a * b - (u * v).sum(1, keepdims=True), a * v + b * u + np.cross(u, v)], axis=1)


def said(heading, length: float, wrong=0.0) -> np.ndarray:
    return length * np.stack([np.cos(heading + wrong), np.sin(heading + wrong)], axis=1)


def test_rotations_turn_as_quaternions_do():
    axes = np.random.default_rng(0).normal(size=(6, 3))
    angles = np.linalg.norm(axes, axis=1, keepdims=True)
    quaternions = np.concatenate([np.cos(angles / 2), np.sin(angles / 2) * axes / angles], axis=1)
    vectors = np.random.default_rng(1).normal(size=(6, 3))
    np.testing.assert_allclose((rotations(axes) @ vectors[:, :, None])[:, :, 0], rotated(vectors, quaternions))
    np.testing.assert_array_equal(rotations(np.zeros((2, 3))), np.stack([np.eye(3)] * 2))


def test_levelling_changes_the_tilt_alone():
    attitudes = rotations(np.random.default_rng(0).normal(size=(4, 3)))
    vertical = rotations(0.1 * np.ones((4, 3)))[:, 0]
    level = levelled(attitudes, vertical)
    np.testing.assert_allclose(level[:, 2], vertical, atol=1e-12)
    np.testing.assert_allclose(level @ level.transpose(0, 2, 1), np.stack([np.eye(3)] * 4), atol=1e-12)
    np.testing.assert_allclose(levelled(level, vertical), level, atol=1e-9)


def test_told_once_it_knows_the_heading_through_every_somersault():
    track, errors = HeadingTrack(HeadingNetwork(SMALL)), []
    for step, (vertical, spin, heading) in enumerate(tumbling(200)):
        found = track.follow(vertical, spin, said(heading, 0.9 if step == 0 else 0.0))
        errors.append(degrees(found, heading)[np.abs(vertical[:, 0]) < 0.95])  # else there is no heading
    assert np.concatenate(errors).max() < 3


def test_doubtful_words_are_outweighed_and_old_ones_forgotten():
    track, rng = HeadingTrack(HeadingNetwork(replace(SMALL, memory=30))), np.random.default_rng(0)
    last = []
    for step, (vertical, spin, heading) in enumerate(tumbling(200)):
        noise = rng.normal(0, 1.0, len(heading))
        words = said(heading, 0.3, noise) if step % 10 else said(heading, 0.95, 0.2 * noise)
        if step == 0:
            words = said(heading, 0.95, math.pi)  # sure, and wrong
        last.append(degrees(track.follow(vertical, spin, words), heading)[np.abs(vertical[:, 0]) < 0.95])
    assert np.concatenate(last[:5]).min() > 90
    assert np.median(np.concatenate(last[100:])) < 10


def test_when_the_world_turns_the_estimate_turns_with_it():
    torch.manual_seed(0)
    network = HeadingNetwork(SMALL)
    seen = np.random.default_rng(0).normal(size=(9, 69))
    other = seen.copy()
    for first in HUMANOID.velocities:
        other[:, first : first + 2] = turned(seen[:, first : first + 2], np.full(9, 0.7))
    other[:, :2] += 5
    with torch.no_grad():
        here, there = (network(torch.tensor(each, dtype=torch.float32)).numpy() for each in (seen, other))
    np.testing.assert_allclose(turned(here, np.full(9, 0.7)), there, atol=1e-5)


@pytest.mark.slow
def test_an_estimator_learns_from_recorded_data_and_comes_back_from_its_folder(walks, tmp_path):
    config = TrainConfig(steps=200, batch=256, learning_rate=3e-3, warmup=20, precision="float32")
    estimator = train_heading(walks, MEDIUM, tmp_path, model=SMALL, config=config, progress=False)
    errors = estimator.record["errors"]
    assert errors["after_first_second"]["median"] < 30  # by chance 90
    assert set(errors) >= {"episodes", "all", "first_second"}
    again = load_heading(tmp_path)
    assert again.record == estimator.record
    for name in ("all", "single_observations"):  # weights are kept in half precision
        kept = measure_heading(again.network, walks[-1:])[name]["median"]
        assert kept == pytest.approx(measure_heading(estimator.network, walks[-1:])[name]["median"], abs=2)
    assert sum(file.stat().st_size for file in tmp_path.glob("*.safetensors")) < 100_000


def test_what_cannot_be_estimated_is_a_sentence(walks, tmp_path):
    with pytest.raises(UserError, match="the heading of the body 'ant' needs no estimate, or cannot be estimated"):
        HeadingConfig("ant")
    with pytest.raises(UserError, match="memory must be at least 1, not 0"):
        HeadingConfig(memory=0)
    with pytest.raises(UserError, match="learned from the field 'qpos', which these episodes do not have"):
        train_heading(replace(walks, qpos=None), MEDIUM, tmp_path, model=SMALL, progress=False)
    with pytest.raises(UserError, match="there is no heading at"):
        load_heading(tmp_path / "nowhere")
    HeadingEstimator(HeadingNetwork(SMALL)).save(tmp_path / "a")
    HeadingEstimator(HeadingNetwork(HeadingConfig(hidden=(8,)))).save(tmp_path / "b")
    config = (tmp_path / "a" / "config.json").read_text()
    (tmp_path / "b" / "config.json").write_text(
        (tmp_path / "b" / "config.json").read_text().replace('"hidden": [\n      8\n', '"hidden": [\n      9\n')
    )
    assert config != (tmp_path / "b" / "config.json").read_text()
    with pytest.raises(UserError, match="holds weights of another network than its config says"):
        load_heading(tmp_path / "b")
