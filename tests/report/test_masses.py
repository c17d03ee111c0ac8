"""Total mass and centre of mass, against sums by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.identification import KnownMasses
from dynid.report.masses import total_mass


def test_total_mass_is_the_sum_of_the_bodies() -> None:
    """Two links, the first of which has a mass that no torque shows."""
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    estimate = dynid.identify(robot, synthetic_recording(robot, 0, 6.0), "feasible")
    found = total_mass(estimate)
    bodies = [estimate.identified_robot.links[i] for i in robot.parameter_links]
    assert np.isclose(found.after, sum(b.inertia[0] for b in bodies))
    assert np.isclose(found.before, sum(robot.links[i].inertia[0] for i in robot.parameter_links))
    assert found.open_links == ("link1",) and np.isclose(found.open_share, bodies[0].inertia[0] / found.after)
    assert found.std is not None and found.std > 0 and "link1" in found.words
    weighed = total_mass(replace(estimate, known_masses=KnownMasses(16.0)))
    assert found.given == "" and weighed.words == f"weighs 16 kg (given), {found.words}"
    # At zero the frames of both links are parallel to that of the base.
    placed = [dynid.dynamics.frame_placement(estimate.identified_robot, np.zeros(2), b.name) for b in bodies]
    moment = sum(h[:3, 3] * b.inertia[0] + h[:3, :3] @ b.inertia[1:4] for h, b in zip(placed, bodies, strict=True))
    assert found.centre_after is not None and np.allclose(found.centre_after, moment / found.after)
