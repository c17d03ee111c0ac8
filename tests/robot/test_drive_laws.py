"""The records of drive terms: efforts in every form are the torques of the compiled kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import dynid
from dynid.codegen.tensor_file import _SHARP, _SMOOTH
from dynid.export.mjcf import DRIVE_KEYS
from dynid.robot.drives import (
    DRIVE_LAWS,
    FRICTION_SYMBOLS,
    FRICTION_TERMS,
    LAW_OF_KIND,
    DriveTerm,
    TermKind,
    drive_kinds,
)


class NumpyEffort(NamedTuple):
    s: np.ndarray
    term: DriveTerm

    @property
    def one(self) -> np.ndarray:
        return np.ones_like(self.s)

    def positive(self) -> np.ndarray:
        return np.maximum(self.s, 0.0)

    def negative(self) -> np.ndarray:
        return np.minimum(self.s, 0.0)

    def step(self, low: float, high: float) -> np.ndarray:
        side = np.tanh(self.term.slope * self.s) if self.term.slope else np.sign(self.s)
        return 0.5 * (high + low) + 0.5 * (high - low) * side

    def fading(self) -> np.ndarray:
        return np.exp(-((self.s / self.term.velocity) ** 2))


SMOOTH = [(law.symbol, 3.0) for law in DRIVE_LAWS.values() if law.family in ("coulomb", "stribeck")]


@pytest.mark.parametrize(("symbol", "slope"), [*((symbol, 0.0) for symbol in DRIVE_LAWS), *SMOOTH])
def test_a_law_is_the_same_in_kernels_symbols_text_and_parts(symbol: str, slope: float) -> None:
    law, robot = DRIVE_LAWS[symbol], dynid.load_robot("twolink", friction="none", rotor_inertia=False)
    settings = {law.setting: 0.7} if law.setting else {}
    robot = robot.with_terms(replace(robot.joint_term("joint2", symbol, 1.0, **settings), slope=slope))
    (term,) = robot.drives
    q, v, a = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 50, 2))
    kernel = dynid.regressor(robot, q, v, a)[:, 1, robot.parameter_names.index(term.name)]
    s = {"q": q, "v": v, "a": a}[law.motion][:, 1]
    effort = NumpyEffort(s - term.rest, term)
    assert law.effort(effort) == pytest.approx(kernel, abs=1e-12)
    sides = {k: x.format(name="own") for k, x in (_SMOOTH if slope else _SHARP).items()}
    given = {"own_velocity": term.velocity, "own_rest": term.rest, "own_slope": slope}
    names = {"np": np, "s": s, "q": q, "_constant": lambda name, _: given[name]}
    assert eval(law.text.format(name="own", **sides), names) == pytest.approx(kernel, abs=1e-12)
    if law.parts is not None and not slope and law.motion == "v":
        one, linear, size, sign = law.parts
        assert one + linear * s + size * np.abs(s) + sign * np.sign(s) == pytest.approx(kernel, abs=1e-12)


def test_what_is_known_of_a_law() -> None:
    assert set(LAW_OF_KIND) == set(TermKind) - {TermKind.CUSTOM}
    assert len({law.key for law in DRIVE_LAWS.values()}) == len(DRIVE_LAWS)
    assert FRICTION_TERMS["coulomb-asymmetric"] == ("fcp", "fcn") and "offset" in FRICTION_TERMS
    assert set(DRIVE_LAWS) - set(FRICTION_SYMBOLS) == {"Ia", "k"}
    assert drive_kinds("stribeck", "spring") == {TermKind.STRIBECK, TermKind.SPRING}
    assert DRIVE_KEYS[TermKind.COULOMB] == "frictionloss" and TermKind.STRIBECK not in DRIVE_KEYS
