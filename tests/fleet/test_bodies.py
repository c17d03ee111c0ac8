"""Steps of the bodies: payloads told from other changes, with p-values that hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from dynid.fleet.bodies import BodySeries, Dispersion, body_steps, dispersion_of, fit_payload, payload_basis
from dynid.robot.inertia import inertia_from_com

Array = NDArray[np.float64]

SIZE, DATES = 14, 6
COLUMNS = np.random.default_rng(0).normal(size=(SIZE, 10))
SURE = Dispersion(1.0, 1.0, 1e6, 1e6)


def unit(seed: int, change: Array | float = 0.0, at: int = 3, noise: float = 1.0) -> BodySeries:
    random = np.random.default_rng(seed)
    roots = 0.05 * random.normal(size=(DATES, SIZE, SIZE)) + 0.1 * np.eye(SIZE)
    values = np.array([noise * root @ random.normal(size=SIZE) for root in roots])
    values[at:] += change
    information = np.linalg.inv(roots @ np.swapaxes(roots, 1, 2))
    return BodySeries(information, np.einsum("nij,nj->ni", information, values))


def test_a_payload_is_found_and_measured() -> None:
    body = inertia_from_com(2.0, np.array([0.1, -0.05, 0.2]), 0.01 * np.eye(3))
    basis = payload_basis(COLUMNS)
    found = body_steps(unit(1, COLUMNS @ body), basis, SURE, 1e-3)
    assert [s.at for s in found] == [3] and found[0].is_payload
    load = fit_payload(found[0].root @ COLUMNS, found[0].whitened, "tool")
    assert abs(load.mass - 2.0) < 4 * load.mass_std and load.mass_std < 0.3
    lost = fit_payload(found[0].root @ COLUMNS, -found[0].whitened, "tool")
    assert lost.mass == pytest.approx(-load.mass) and lost.centre == pytest.approx(load.centre)


def test_another_change_is_no_payload() -> None:
    basis = payload_basis(COLUMNS)
    beyond = scipy.linalg.null_space(basis.T)[:, 0]
    found = body_steps(unit(2, 5.0 * beyond), basis, SURE, 1e-3)
    assert [s.at for s in found] == [3] and not found[0].is_payload


def test_false_alarms_stay_below_the_stated_rate() -> None:
    basis = payload_basis(COLUMNS)
    alarms = np.mean([bool(body_steps(unit(seed), basis, SURE, 0.1)) for seed in range(150)])
    assert 0.03 < alarms <= 0.2  # two tests, along and beyond the payload, of 0.1 each


def test_what_the_model_lacks_enlarges_the_covariances() -> None:
    basis = payload_basis(COLUMNS)
    found = dispersion_of([unit(seed, noise=2.0) for seed in range(40)], basis)
    assert found.payload == pytest.approx(4.0, rel=0.3) and found.rest == pytest.approx(4.0, rel=0.4)
    assert dispersion_of([unit(seed, noise=0.5) for seed in range(40)], basis).payload == 1.0
