"""Masses that are known: what the options accept, and what estimates keep of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import ConflictingArguments, Duplicate, InvalidType, InvalidValue, UnknownName
from dynid.identification import AutoOptions, FeasibleOptions, KnownMasses, known_masses
from dynid.identification.summary import body_lines
from tests.support.errors import Error, expect_error
from tests.support.synthetic import EXACT, arm, record

ROBOT = dynid.load_robot("rv2sq")


@pytest.mark.parametrize("options", [AutoOptions, FeasibleOptions])
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"mass": 0}, (InvalidValue, "mass")),
        ({"mass": -3.5}, (InvalidValue, "mass")),
        ({"mass": math.inf}, (InvalidValue, "mass")),
        ({"mass": math.nan}, (InvalidValue, "mass")),
        ({"mass": True}, (InvalidValue, "mass")),
        ({"mass": "16kg"}, (InvalidValue, "mass")),
        ({"link_masses": {"link2": -1.0}}, (InvalidValue, "link_masses")),
        ({"link_masses": 4.8}, (InvalidType, "link_masses")),
        ({"box": "no"}, (InvalidType, "box")),
    ],
)
def test_values_that_no_robot_has_are_refused(options: Any, given: dict[str, Any], error: Error) -> None:
    """When the options are made, before there is a robot, by both methods alike."""
    with expect_error(*error):
        options(**given)


def test_masses_by_name_and_by_pattern() -> None:
    """A wildcard means each link; a name in brackets is itself; nothing given is nothing known."""
    assert known_masses(ROBOT) == KnownMasses() and KnownMasses().words() == ""
    found = known_masses(ROBOT, 20, {"link[1-2]": 4, "link6": 0.5})
    assert found == KnownMasses(20.0, {"link1": 4.0, "link2": 4.0, "link6": 0.5})
    assert found.words() == "weighs 20 kg (given)" and found.words("link6") == "weighs 0.5 kg (given)"
    assert found.words("link3") == ""
    assert known_masses(ROBOT, 0.3, {"link1": 0.1, "link2": 0.2}).total == 0.3  # their sum is more by rounding


@pytest.mark.parametrize(
    ("mass", "links", "error"),
    [
        (None, {"lnk2": 4.8}, (UnknownName, "link_masses")),
        (None, {"wrist": 4.8}, (UnknownName, "link_masses")),
        (None, {"base": 4.8}, (UnknownName, "link_masses")),
        (None, {"link*": 2.0, "link3": 4.8}, (Duplicate, "link_masses")),
        (5.0, {"link2": 4.8, "link3": 0.3}, (ConflictingArguments, "mass")),
    ],
)
def test_masses_that_do_not_fit_the_robot_are_refused(
    mass: float | None, links: dict[str, float], error: Error
) -> None:
    with expect_error(*error):
        known_masses(ROBOT, mass, links)


def test_estimates_keep_what_was_given(tmp_path: Path) -> None:
    """In the file, in the summary, and told by plain data; a box that is off is told as well."""
    given: dict[str, Any] = {"mass": 6.0, "link_masses": {"link2": 2.0}, "box": False}
    recording = record(arm(), (0, 1), noise=0.05)
    estimate = dynid.identify(arm(), recording, "feasible", signals=EXACT, **given)
    assert estimate.known_masses == KnownMasses(6.0, {"link2": 2.0}) and estimate.box is False
    assert estimate.to_dict()["known_masses"] == {"total": 6.0, "links": {"link2": 2.0}}
    assert body_lines(estimate) == ["link2 weighs 2 kg (given)", "the plausible box of the bodies is switched off"]
    summary = estimate.summary()
    assert "the robot weighs 6 kg (given)" in summary and body_lines(estimate)[0] in summary
    estimate.save(tmp_path / "estimate.json")
    back = dynid.Estimate.load(tmp_path / "estimate.json")
    assert back.known_masses == estimate.known_masses and back.box is False
    plain = dynid.identify(arm(), recording, "wls", signals=EXACT)
    assert plain.known_masses == KnownMasses() and plain.box is None and body_lines(plain) == []


def test_links_are_checked_before_any_signal_is_processed() -> None:
    """Also by the default method: a recording that no method could use is not looked at."""
    run = dynid.Run(np.arange(2.0), np.zeros((2, 6)))
    for method in ("auto", "feasible"):
        with expect_error(UnknownName, "link_masses"):
            dynid.identify(ROBOT, dynid.Recording(ROBOT.coordinates, (run,)), method, link_masses={"wrist": 1.0})


def test_method_auto_keeps_what_was_given() -> None:
    """Through the search for a model."""
    found = dynid.identify(arm(), record(arm(), (0,), noise=0.05), signals=EXACT, mass=6.0)
    assert found.known_masses == KnownMasses(6.0) and found.box is True
