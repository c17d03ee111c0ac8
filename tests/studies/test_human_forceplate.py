"""A real person on a force plate: what the study says of motion held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.reproduce import human_forceplate as study

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def part(data: Path) -> study.Halves:
    if not (data / "human-forceplate-figaroh").is_dir():
        pytest.skip("no data of a person on a force plate")
    return study.person()


@pytest.mark.slow
def test_the_study_keeps_its_figures(part: study.Halves) -> None:
    """Unseen motion a quarter better, all bodies possible, the mass within a hundredth: figures of the study itself."""
    figures = list(study.figures())
    out = [f for f in figures if not f.ok]
    assert not out, out
    assert len(figures) == 22
    goals = {f.name: f.difference for f in figures if f.tolerance < 0}
    assert goals == {
        "mean of the errors": pytest.approx(-0.33, abs=0.02),
        "mean of the ratios": pytest.approx(-0.26, abs=0.02),
    }


def test_nothing_is_learned_from_the_part_held_out(part: study.Halves) -> None:
    """Weight and zero of the plate are those of the first part."""
    assert part.train.t[-1] < part.test.t[0]
    assert len(part.train) == pytest.approx(2 * len(part.test), abs=3)
    assert part.mass == pytest.approx(part.train.wrenches["plate"][:, 2].mean() / 9.81)
    np.testing.assert_allclose(part.offset, [-4.12, 2.12, 0, 0, 0, 13.74], atol=0.05)


def test_bridging_takes_errors_off(part: study.Halves) -> None:
    """Half of the poses repeat the one before; a curve through the others predicts the moments better."""
    assert part.repeated == 1353
    held = study.person(bridge=False)
    bare = study.errors(part.robot, part.robot.parameters, held.train, part.offset)
    curve = study.errors(part.robot, part.robot.parameters, part.train, part.offset)
    assert np.all(curve[[1, 5]] < 0.75 * bare[[1, 5]])
    assert np.all(curve < 1.05 * bare)
