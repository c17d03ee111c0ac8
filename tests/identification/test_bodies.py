"""Total mass and centre of mass, against sums by hand, and how much of it the recording determines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.model_checks import check_unidentified_mass
from dynid.cli.demo import synthetic_recording
from dynid.cli.output import mass_lines
from dynid.export.label import label_of
from dynid.identification import KnownMasses
from dynid.identification.bodies import total_mass
from dynid.identification.known import prior_shares
from tests.support.synthetic import EXACT, arm, record


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


@pytest.fixture(scope="module", params=["auto", "wls"])
def heavy(request: pytest.FixtureRequest) -> dynid.Estimate:
    """Bodies of 1.7 times their prior: their masses move, and no torque depends on the first."""
    robot = arm()
    factor = np.where([p.inertial for p in robot.layout], 1.7, 1.0)
    return dynid.identify(robot, record(robot.with_parameters(factor * robot.parameters)), request.param, signals=EXACT)


def test_everybody_says_the_same_share_of_the_mass(heavy: dynid.Estimate) -> None:
    mass, label = total_mass(heavy), label_of(heavy)
    assert label is not None and 0.0 < mass.open_share <= 1.0
    assert mass.sentence in mass_lines(heavy)[0] and mass.sentence in "\n".join(label.lines())
    check = check_unidentified_mass(Evidence(heavy))
    assert check.figure == mass.open_share and mass.sentence in check.words


def test_a_mass_is_determined_where_its_own_variance_is_halved(heavy: dynid.Estimate) -> None:
    """Not where no torque depends on it, whatever the prior says of its shape, nor because its value moved."""
    shares = dict(zip(heavy.robot.parameter_names, prior_shares(heavy), strict=True))
    masses = [p for p in heavy.robot.layout if p.symbol == "m"]
    found = set(total_mass(heavy).open_links)
    assert "link1" in found
    if heavy.standard is None:  # without a prior, a mass is determined alone or not at all
        assert found == {p.owner for p in masses if heavy.base.classes[p.name] != "identifiable"}
    else:
        assert found == {p.owner for p in masses if shares[p.name] > 0.5}
