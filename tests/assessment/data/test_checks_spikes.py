"""Spikes of the torque are found, and noise, friction steps and coarse steps are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.assessment import Finding
from dynid.cli.demo import synthetic_recording


@pytest.fixture(scope="module")
def robot() -> dynid.Robot:
    return dynid.load_robot("twolink", friction="viscous+coulomb")


@pytest.fixture(scope="module")
def recording(robot: dynid.Robot) -> dynid.Recording:
    return synthetic_recording(robot, 0, 10.0)


def spikes(robot: dynid.Robot, recording: dynid.Recording) -> list[Finding]:
    return [f for f in dynid.check(robot, recording) if f.code == "torque_spikes"]


def with_torque(recording: dynid.Recording, torque: np.ndarray) -> dynid.Recording:
    return replace(recording, runs=(replace(recording.runs[0], torque=torque),))


def test_dropouts_and_outliers_are_named(robot: dynid.Robot, recording: dynid.Recording) -> None:
    torque = np.array(recording.runs[0].torque)
    rows = np.random.default_rng(0).choice(len(torque), 30, replace=False)
    torque[rows, 1] = 3 * torque[:, 1].max()
    found = spikes(robot, with_torque(recording, torque))
    assert [f.joint for f in found] == ["joint2"] and found[0].severity == "warning"
    assert found[0].how_much.startswith("30 samples") and f"row {rows.min()}" in found[0].what


def test_noise_steps_and_quantisation_are_no_spikes(robot: dynid.Robot, recording: dynid.Recording) -> None:
    torque = np.array(recording.runs[0].torque)
    span = np.ptp(torque, axis=0)
    assert not spikes(robot, recording)
    noisy = torque + 0.1 * span * np.random.default_rng(0).normal(size=torque.shape)
    assert not spikes(robot, with_torque(recording, noisy))
    steps = torque + 2 * span * np.sign(np.sin(20 * recording.runs[0].t))[:, None]
    assert not spikes(robot, with_torque(recording, steps))
    assert not spikes(robot, with_torque(recording, np.round(noisy / span) * span))
