"""Verdicts on payloads, gains, friction and fleets: good ones are trusted, and each fault is named by its check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.assessment import Assessment
from dynid.calibration import DriveGains, Payload, identify_drive_gains, identify_payload, reference_gains
from dynid.calibration.payload import MassSource
from dynid.errors import InvalidType, InvalidValue
from dynid.fleet import FleetEntry, FleetEstimate, identify_fleet
from dynid.friction import FrictionSelection, select_friction
from dynid.recording.recording import Recording
from dynid.report import write_result
from dynid.report.results import verdict_on
from tests.support.errors import expect_error
from tests.support.friction_truth import STRIBECK
from tests.support.friction_truth import arm as stribeck_arm
from tests.support.friction_truth import record as stribeck_record
from tests.support.loaded_runs import GAINS, HAND, MASS, currents, torques
from tests.support.synthetic import EXACT, arm

NOISE = 0.1


def weighed(loaded: Recording | None = None, **given: object) -> Payload:
    options = {"unloaded": torques(False, NOISE, 1), "link": HAND, "signals": EXACT} | given
    return identify_payload(arm(), torques(True, NOISE, 2) if loaded is None else loaded, **options)  # type: ignore[arg-type]


def by_gains(loaded: bool, factors: np.ndarray) -> Recording:
    """Currents that were turned into torques with gains that are wrong by `factors`."""
    recording = currents(loaded, NOISE / 10, 3 + loaded)
    runs = tuple(replace(x, torque=x.current * GAINS * factors) for x in recording.runs if x.current is not None)
    return Recording(recording.joints, runs)


def doubts(assessment: Assessment) -> set[str]:
    return {c.code.value for c in assessment.checks if c.result in ("warned", "failed")}


def test_a_payload_from_measured_torques_is_trusted() -> None:
    verdict = verdict_on(weighed())
    assert verdict.trusted, verdict.summary()
    assert verdict.robot == arm().name and verdict.check("gains").result == "not checked"
    assert "kg" in verdict.reasons[0]


@pytest.mark.parametrize("factor", [0.9, 1.0, 1.1])
def test_typed_gains_decide_a_payload(factor: float) -> None:
    """All gains wrong by one factor: the mass is, too, and lies within two of its standard deviations."""
    factors = np.full(3, factor)
    found = weighed(by_gains(True, factors), unloaded=by_gains(False, factors))
    verdict = verdict_on(found)
    assert abs(found.mass / (factor * MASS) - 1) < 0.02
    assert abs(found.mass - MASS) < 2 * found.mass_std
    assert verdict.verdict == "use with care"
    assert verdict.reasons[0].startswith("the gains of the drives decide")
    assert max(found.mass_sources, key=lambda x: found.mass_sources[x]) is MassSource.GAINS
    squares = sum(x**2 for x in found.mass_sources.values())
    assert squares == pytest.approx(found.mass_std**2)


def test_measured_gains_state_their_own_error() -> None:
    """The relative covariance of identified gains takes the place of that of typed ones."""
    gains = identify_drive_gains(
        arm(), currents(False, 0.002, 5), currents(True, 0.002, 6), payload=MASS, link=HAND, signals=EXACT
    )
    ones = np.ones(3)
    given = {"unloaded": by_gains(False, ones)}
    found = weighed(by_gains(True, ones), **given, gain_std=gains.relative_covariance)
    assert found.mass_std < 0.5 * weighed(by_gains(True, ones), **given).mass_std
    assert verdict_on(found).check("gains").result == "passed"
    with expect_error(InvalidValue, "gain_std"):
        weighed(gain_std=-0.1)


def test_gains_that_contradict_each_other_are_in_the_standard_deviation() -> None:
    """One of three gains wrong by a third: joints give different masses."""
    factors = np.array([1.0, 1.33, 1.0])
    found = weighed(by_gains(True, factors), unloaded=by_gains(False, factors), gain_std=0.0)
    assert found.scatter > 0.05 and abs(found.mass - MASS) < 3 * found.mass_std
    assert "torque_scale" in doubts(verdict_on(found))


@pytest.mark.parametrize("factor", [0.8, 1.2, 1.5])
@pytest.mark.parametrize("kind", ["robot", "estimate"])
def test_a_wrong_arm_is_in_the_standard_deviation(kind: str, factor: float) -> None:
    """An arm that was exact gave masses dozens of standard deviations from the truth."""
    model: dynid.Robot | dynid.Estimate = arm().with_parameters(factor * arm().parameters)
    if kind == "estimate":
        right = dynid.identify(arm(), torques(False, NOISE, 1), "wls", signals=EXACT)
        model = replace(right, beta=factor * right.beta)
    found = weighed(unloaded=None, model=model)
    assert abs(found.mass - MASS) < 3 * found.mass_std
    assert found.mass_std > 0.02 * MASS
    assert doubts(verdict_on(found)) & {"arm_model", "residual"}
    good = weighed(unloaded=None, model=arm())
    assert good.mass_std < 0.005 * MASS and verdict_on(good).check("arm_model").result == "passed"


def test_no_payload_is_no_payload() -> None:
    verdict = verdict_on(weighed(torques(False, NOISE, 9), feasible=False))
    assert verdict.verdict == "do not use"
    assert "uncertainty" in doubts(verdict)


def test_a_payload_that_was_dropped_is_noticed() -> None:
    """The second of two loaded runs is without it."""
    loaded, bare = torques(True, NOISE, 2), torques(False, NOISE, 3)
    verdict = verdict_on(weighed(Recording(loaded.joints, (loaded.runs[0], bare.runs[1]))))
    assert "parameter_agreement" in doubts(verdict) and not verdict.trusted


def gains_of(**options: object) -> DriveGains:
    given = {"payload": MASS, "link": HAND, "signals": EXACT} | options
    return identify_drive_gains(arm(), currents(False, 0.002, 5), currents(True, 0.002, 6), **given)  # type: ignore[arg-type]


def test_gains_from_a_known_mass_are_trusted_and_those_of_a_bound_are_not() -> None:
    found = gains_of()
    assert found.halves is not None and found.halves.shape == (2, 3)
    # Joint 1 is vertical: only its accelerations show its gain.
    assert doubts(verdict_on(found)) <= {"uncertainty", "excitation"}
    held = gains_of(bounds=(0.0, [30.0, 7.0, 30.0]))
    assert held.at_bounds == ("joint2",) and "bounds" in doubts(verdict_on(held))


def test_gains_that_the_data_do_not_tell_are_not_trusted() -> None:
    found = gains_of()
    lost = replace(found, shown=(False, True, True))
    none = replace(found, shown=(False,) * 3)
    assert verdict_on(lost).check("excitation").result == "warned"
    assert verdict_on(none).verdict == "do not use"
    assert "joint1" in verdict_on(lost).check("excitation").words


def test_gains_by_measured_torques() -> None:
    """A current of the wrong sign fails; halves that differ warn."""
    runs = []
    for x in torques(True, 0.01).runs:
        assert x.torque is not None
        runs.append(replace(x, current=x.torque / GAINS + 0.001 * np.random.default_rng(0).normal(size=x.q.shape)))
    recording = Recording(torques(True).joints, tuple(runs))
    assert verdict_on(reference_gains(recording)).trusted
    turned = tuple(replace(x, current=-x.current) for x in recording.runs if x.current is not None)
    assert verdict_on(reference_gains(Recording(recording.joints, turned))).verdict == "do not use"
    warm = (recording.runs[0], replace(recording.runs[1], current=1.3 * np.asarray(recording.runs[1].current)))
    assert "parameter_agreement" in doubts(verdict_on(reference_gains(Recording(recording.joints, warm))))


@pytest.fixture(scope="module")
def rubbing() -> FrictionSelection:
    return select_friction(
        stribeck_arm(),
        stribeck_record("stribeck", STRIBECK, samples=2000),
        ["joint2"],
        models=["coulomb+viscous", "stribeck"],
        signals=EXACT,
    )


def test_friction_on_other_motion_is_judged(rubbing: FrictionSelection) -> None:
    other = rubbing.validate(stribeck_record("stribeck", STRIBECK, samples=2000, motion_seed=4, seed=7))
    verdict = verdict_on(rubbing, other)
    assert verdict.check("evidence").result == verdict.check("validation_error").result == "passed"
    assert verdict.check("excitation").result == "passed", verdict.summary()
    assert verdict_on(rubbing).check("evidence").result == "warned"
    bad = replace(other, relative=other.relative + 0.6)
    assert verdict_on(rubbing, bad).verdict == "do not use"


def changed(found: FrictionSelection, **fields: object) -> set[str]:
    fit = replace(found.fits[0], **fields)  # type: ignore[arg-type]
    return doubts(verdict_on(replace(found, fits=(fit,))))


def test_each_fault_of_friction_has_its_check(rubbing: FrictionSelection) -> None:
    fit = rubbing.fits[0]
    assert "excitation" not in doubts(verdict_on(rubbing))
    assert "excitation" in changed(rubbing, velocity=np.abs(fit.velocity))
    assert "excitation" in changed(
        rubbing, velocity=np.where(np.abs(fit.velocity) < 0.2 * fit.max_velocity, 1.0, fit.velocity)
    )
    warm = np.linspace(1.4, 0.8, len(fit.friction))
    assert "change" not in doubts(verdict_on(rubbing)) and "change" in changed(rubbing, friction=warm * fit.friction)
    best = replace(fit.best, rms=2 * float(np.sqrt(np.mean(fit.friction**2))))
    assert "residual" in changed(rubbing, ranking=(best, *fit.ranking[1:]))
    # The other law is as good by its criterion, and another friction.
    rival = replace(fit.ranking[1], aic=fit.best.aic)
    assert "law" in changed(
        rubbing, ranking=(fit.best, replace(rival, parameters={k: 3 * v for k, v in rival.parameters.items()}))
    )
    vague = replace(fit.best, covariance=fit.best.covariance + 100 * np.eye(len(fit.best.parameters)))
    assert "uncertainty" in changed(rubbing, ranking=(vague, *fit.ranking[1:]))


@pytest.fixture(scope="module")
def fleet() -> FleetEstimate:
    from dynid.cli.demo import synthetic_recording

    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    days = [f"2026-03-{2 + 4 * week:02d}" for week in range(4)]
    entries = [
        FleetEntry(unit, day, synthetic_recording(robot, 10 * w + k, 8.0))
        for w, day in enumerate(days)
        for k, unit in enumerate("ABC")
    ]
    entries.append(FleetEntry("D", days[0], synthetic_recording(robot, 99, 8.0)))
    return identify_fleet(robot, entries)


def test_a_unit_with_one_date_is_named(fleet: FleetEstimate) -> None:
    verdict = verdict_on(fleet)
    assert verdict.verdict == "use with care" and "units" in doubts(verdict)
    assert verdict.check("units").words.endswith(": D")
    steady = tuple(u for u in fleet.health.units if u.unit != "D")
    good = verdict_on(replace(fleet, units=("A", "B", "C"), health=replace(fleet.health, units=steady)))
    assert good.trusted, good.summary()
    assert any("recordings decide" in reason or "fleet decides" in reason for reason in good.reasons)


def test_recordings_left_out_and_few_dates_are_in_the_verdict(fleet: FleetEstimate) -> None:
    from dynid.fleet.entries import EntryFault

    faults = tuple(EntryFault("E", "2026-03-02", "nothing") for _ in range(40))
    assert verdict_on(replace(fleet, faults=faults)).check("data").result == "failed"
    short = tuple(replace(u, dates=2) for u in fleet.health.units)
    assert "recording_length" in doubts(verdict_on(replace(fleet, health=replace(fleet.health, units=short))))


def test_other_things_have_no_verdict() -> None:
    with expect_error(InvalidType, "result"):
        verdict_on("payload")


def test_every_result_has_its_page(fleet: FleetEstimate, rubbing: FrictionSelection, tmp_path: Path) -> None:
    """Verdict and first reason stand on it, with a plot."""
    for result in (weighed(), gains_of(), rubbing, fleet):
        path = tmp_path / "page.html"
        verdict = write_result(result, path)
        text = path.read_text(encoding="utf-8")
        assert verdict == verdict_on(result)
        assert f'<p class="word">{verdict.verdict.capitalize()}</p>' in text
        assert all(check.name in text for check in verdict.checks)
        if result is not fleet:
            assert '<svg class="chart"' in text
