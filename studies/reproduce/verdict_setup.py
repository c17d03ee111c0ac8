"""Kinds of faults, and what all of them know: the plant, the joint and the size that a seed draws."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from studies.reproduce.plants import Traces
from studies.reproduce.verdict_plants import Plant, RunName, Sensing

__all__ = ["Fault", "Setup"]

Array = NDArray[np.float64]


class Fault(StrEnum):
    """Code of a kind of fault."""

    NONE = "none"
    TORQUE_GAIN = "torque_gain"
    TORQUE_SIGN = "torque_sign"
    TORQUE_DELAY = "torque_delay"
    TORQUE_LOW_PASS = "torque_low_pass"
    TORQUE_CLIPPED = "torque_clipped"
    TORQUE_QUANTIZED = "torque_quantized"
    TORQUE_SPIKES = "torque_spikes"
    GRAVITY_COMPENSATED = "gravity_compensated"
    COMPUTED_TORQUE = "computed_torque"
    ENCODER_OFFSET = "encoder_offset"
    DEGREES = "degrees"
    JOINTS_SWAPPED = "joints_swapped"
    STAMP_JITTER = "stamp_jitter"
    SAMPLES_LOST = "samples_lost"
    ROWS_REPEATED = "rows_repeated"
    TORQUE_ASYMMETRIC = "torque_asymmetric"
    TORQUE_RECTIFIED = "torque_rectified"
    TORQUE_NONLINEAR = "torque_nonlinear"
    CROSSTALK = "crosstalk"
    CLOCK_RATE = "clock_rate"
    ZEROS_TURNED = "zeros_turned"
    REUSED_RECORDING = "reused_recording"
    LINK_LENGTH = "link_length"
    GRAVITY_SIGN = "gravity_sign"
    BASE_TILT = "base_tilt"
    ELASTICITY = "elasticity"
    SWINGING_BASE = "swinging_base"
    BACKLASH = "backlash"
    THERMAL_DRIFT = "thermal_drift"
    DRIVE_SATURATED = "drive_saturated"
    PRESLIDING = "presliding"
    CONTACT = "contact"
    COGGING = "cogging"
    STRIBECK = "stribeck"
    LOAD_FRICTION = "load_friction"
    PAYLOAD = "payload"
    JOINT_STILL = "joint_still"
    POSITION_SIGN = "position_sign"
    JOINT_REVERSED = "joint_reversed"
    GEAR_RATIO = "gear_ratio"
    POSITION_COARSE = "position_coarse"
    POSITION_STUCK = "position_stuck"
    POSITION_WRAPPED = "position_wrapped"
    POSITION_COMMANDED = "position_commanded"
    CLOCK_JUMP = "clock_jump"
    TORQUE_UNIT = "torque_unit"
    TORQUE_ZERO = "torque_zero"
    TORQUE_HELD = "torque_held"
    TORQUE_DRIFT = "torque_drift"
    TORQUE_TONE = "torque_tone"
    ONE_TORQUE_LATE = "one_torque_late"
    SPRING = "spring"
    COUNTERBALANCE = "counterbalance"
    CABLE = "cable"
    COUPLED_FRICTION = "coupled_friction"
    PAYLOAD_CHANGED = "payload_changed"
    OTHER_ROBOT = "other_robot"
    GRAVITY_MISSING = "gravity_missing"


@dataclass(frozen=True, eq=False)
class Setup:
    """A plant, the seed of a case, and the joint and the size of its fault; `u` is uniform between 0 and 1."""

    plant: Plant
    seed: int
    fault: Fault

    @cached_property
    def _drawn(self) -> tuple[float, float, int]:
        rng = np.random.default_rng([self.seed, zlib.crc32(f"{self.plant.name} {self.fault}".encode())])
        return float(rng.uniform()), float(rng.choice([-1.0, 1.0])), int(rng.integers(self.plant.truth.n))

    @property
    def u(self) -> float:
        return self._drawn[0]

    @property
    def sign(self) -> float:
        return self._drawn[1]

    @property
    def joint(self) -> int:
        return self._drawn[2]

    @property
    def large_joint(self) -> int:
        """One of the first three joints."""
        return self.joint % min(3, self.plant.truth.n)

    @cached_property
    def turning_joint(self) -> int:
        """A joint that turns."""
        turning = [j for j, x in enumerate(self.plant.truth.joints) if x.kind == "revolute"]
        return turning[self.joint % len(turning)]

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.u

    def rng(self, run: RunName) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(self.fault.encode()), run == "unseen"])

    @cached_property
    def sensing(self) -> Sensing:
        return Sensing.of(self.seed)

    @cached_property
    def good(self) -> dict[RunName, Traces]:
        return {run: self.plant.moved(self.seed, run) for run in ("training", "unseen")}

    @cached_property
    def peak(self) -> Array:
        """Largest torques (n,) of the good runs."""
        return np.max([np.abs(traces.torque).max(axis=0) for traces in self.good.values()], axis=0)

    @cached_property
    def rms(self) -> Array:
        return np.sqrt(np.mean(self.good["training"].torque ** 2, axis=0))

    @property
    def name(self) -> str:
        return self.plant.truth.coordinates[self.joint]
