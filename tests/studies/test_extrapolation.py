"""Torques at full velocity from slow recordings, with friction laws that the model does not have."""

from __future__ import annotations

import numpy as np
import pytest

from studies.reproduce.extrapolation import LAWS, SLOW, Plant, extrapolation


@pytest.mark.parametrize("law", LAWS)
def test_the_truth_at_full_velocity_is_in_the_band(law: str) -> None:
    """Of a quadratic law the band is not twice as wide as it must be; the verdict names the recorded share."""
    found = [extrapolation(Plant("two joints", law, seed), "wls") for seed in range(3)]
    assert np.mean([x.inside for x in found]) >= 0.9
    assert np.median([x.width for x in found]) < {"quadratic": 2.5, "Stribeck": 8.0, "square root": 15.0}[law]
    assert all(abs(x.share - SLOW) < 0.02 for x in found)


def test_the_friction_of_a_plant_is_its_law() -> None:
    """Torques in both directions at the same state differ by twice the friction, which is one at the largest share."""
    for name, law in LAWS.items():
        plant = Plant("two joints", name, 0)
        q, v, a = (x[:5] for x in plant.motion(1.0))
        forward, backward = plant.torque(q, v, a), plant.torque(q, -v, a)
        share = np.abs(v) / np.array([plant.prior.limits[c].velocity for c in plant.prior.coordinates])
        scale = 0.5 * (forward - backward) / (law(share) * np.sign(v))
        np.testing.assert_allclose(scale, np.broadcast_to(scale[0], scale.shape), rtol=1e-9)
