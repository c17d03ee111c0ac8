"""Gains and offsets of velocity sensors, from positions alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import MissingData, NotIdentifiable
from dynid.recording.recording import Recording
from dynid.signals.filters import decimate
from dynid.signals.settings import Signals, prepare

__all__ = ["velocity_sensors"]

Array = NDArray[np.float64]


def velocity_sensors(
    recording: Recording, settings: Signals, words: tuple[str, ...]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Gain and offset (joint,) of measured velocities against the rate of positions, and their standard deviations."""
    joints = len(recording.joints)
    rows: list[list[Array]] = [[] for _ in range(joints)]
    for run in recording.runs:
        if run.v is None:
            raise MissingData(f"run '{run.name}' has no measured velocity, whose sensor is to be calibrated")
        moved = prepare(run, replace(settings, measured_velocity=False, measured_acceleration=False))
        told = prepare(run, replace(settings, measured_velocity=True, measured_acceleration=False))
        step = int(np.prod(moved.decimate or (1,)))
        for j in range(joints):
            both = np.column_stack([moved.v[:, j], told.v[:, j]])
            rows[j].append(decimate(both, moved.decimate)[moved.lead // step : (len(both) - moved.lead) // step])
    value = {"velocity_gain": np.ones(joints), "velocity_offset": np.zeros(joints)}
    std = {word: np.zeros(joints) for word in value}
    for j, parts in enumerate(rows):
        true, told_v = np.vstack(parts).T
        columns = [true] if "velocity_gain" in words else []
        columns += [np.ones_like(true)] if "velocity_offset" in words else []
        A = np.column_stack(columns)
        y = told_v if "velocity_gain" in words else told_v - true
        if "velocity_gain" in words and np.ptp(true) == 0:
            raise NotIdentifiable(
                f"joint '{recording.joints[j]}' stands still, which tells nothing of its velocity gain"
            )
        x = np.linalg.lstsq(A, y, rcond=None)[0]
        noise = np.linalg.norm(y - A @ x) / np.sqrt(max(len(y) - len(x), 1))
        one_std = noise * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
        for k, word in enumerate(w for w in ("velocity_gain", "velocity_offset") if w in words):
            value[word][j], std[word][j] = x[k], one_std[k]
    return value, std
