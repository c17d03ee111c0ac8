"""Formats with one coefficient per joint hold the mean of both directions."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynid


@pytest.mark.parametrize("name", ["arm.urdf", "arm.xml", "arm.sdf"])
def test_friction_of_both_directions_is_written_as_its_mean(tmp_path: Path, name: str) -> None:
    """Nearly equal directions are no loss; what differs by more than a fifth is said."""
    robot = dynid.load_robot("rv2sq").with_drives("viscous-asymmetric+coulomb", rotor_inertia=False)
    values = {p: 1.0 for p in robot.parameter_names if p.startswith(("fv", "fc"))}
    values |= {"fvp_joint1": 1.05, "fvn_joint1": 0.95, "fvp_joint2": 3.0}
    pi = robot.parameters.copy()
    for parameter, value in values.items():
        pi[robot.parameter_names.index(parameter)] = value
    warnings = dynid.export.write(robot.with_parameters(pi), tmp_path / name)
    assert next(w for w in warnings if "directions" in w).endswith("directions: fv_joint2 is the mean of both")
    back = dynid.load_robot(tmp_path / name, friction="viscous+coulomb")
    found = dict(zip(back.parameter_names, back.parameters, strict=True))
    assert found["fv_joint1"] == pytest.approx(1.0) and found["fv_joint2"] == pytest.approx(2.0)
