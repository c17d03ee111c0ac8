"""All reproductions by name."""

from __future__ import annotations

from dynid.errors import DataError, did_you_mean
from studies.reproduce import (
    actuators,
    between_runs,
    bodies,
    codegen,
    compensated_control,
    coverage,
    drives,
    dynamics,
    excitation,
    extrapolation,
    feasible_robots,
    fleet,
    fleet_real,
    flexible,
    friction_robots,
    geometry,
    geometry_faults,
    geometry_postures,
    halves,
    horizon,
    human_forceplate,
    human_regressor,
    iiwa_feasibility,
    intervals,
    kr300,
    kr300_flexible,
    legs,
    pc_didim,
    real_verdicts,
    refusals,
    regret,
    residual_robots,
    robots,
    semi_parametric,
    servo_friction,
    so101,
    stacking,
    structure,
    toolbox,
    tx40,
    tx40_filters,
    verdicts,
    wam,
)
from studies.reproduce.study import Study

__all__ = ["find_study", "studies"]


def studies() -> dict[str, Study]:
    """All reproductions by name."""
    found = [
        Study("structure", "Counts and groupings of base parameters", structure.figures),
        Study("dynamics", "Torques and mass matrices of the printed models", dynamics.figures),
        Study(
            "excitation",
            "Published motions, better designs within the same limits, and an arm in a corner",
            excitation.figures,
        ),
        Study(
            "stacking",
            "TIAGo's motions one after another against a single one of the same length and iterations",
            stacking.figures,
        ),
        Study("toolbox-2dof", "The 2-DOF example from random samples", toolbox.figures),
        Study("wam", "Physical feasibility of the WAM's parameters, and their free falls", wam.figures),
        Study("codegen", "Generated code of an example robot, and its operations for an arm", codegen.figures),
        Study(
            "iiwa-feasibility", "Physical consistency of the printed parameters of the iiwa", iiwa_feasibility.figures
        ),
        Study("pc-didim", "A simulated TX40: bias, covariance, tests", pc_didim.figures),
        Study(
            "actuators",
            "Simulated legs, motors and servos identified from encoders",
            actuators.figures,
        ),
        Study(
            "semi-parametric",
            "Simulated arms with learned residual torques",
            semi_parametric.figures,
        ),
        Study(
            "compensated-control", "Low-gain tracking with stiction, ripple and elasticity", compensated_control.figures
        ),
        Study(
            "coverage",
            "95 % intervals of arms simulated by MuJoCo and Pinocchio, with white and autocorrelated torque noise",
            coverage.figures,
        ),
        Study(
            "intervals",
            "95 % intervals over a design of robots, lengths, noise and hardly visible terms",
            intervals.figures,
        ),
        Study(
            "regret",
            "Error of the default on unseen motion against the best of all other methods",
            regret.figures,
        ),
        Study(
            "refusals",
            "Small recordings that weighted least squares fits: does the default fit them?",
            refusals.figures,
        ),
        Study(
            "extrapolation",
            "Torques at full velocity from recordings at 30 % of it, with friction laws that the model does not have",
            extrapolation.figures,
        ),
        Study(
            "verdicts",
            "Verdicts on good and spoiled recordings of arms simulated by MuJoCo and Pinocchio",
            verdicts.figures,
        ),
        Study(
            "geometry-faults",
            "Verdicts on good and spoiled measurements of geometry, of arms placed by Pinocchio",
            geometry_faults.figures,
        ),
        Study(
            "flexible",
            "Flexible joints of known stiffness, from encoders of motors and links or of motors alone",
            flexible.figures,
        ),
        Study(
            "geometry",
            "Geometric calibration of robots with known errors, and of real ones from sockets and motion capture",
            geometry.figures,
        ),
        Study("human-regressor", "A human body in three metrics", human_regressor.figures, needs_data=True),
        Study(
            "human-forceplate",
            "A person on a force plate",
            human_forceplate.figures,
            needs_data=True,
        ),
        Study("tx40", "The identified TX40 from its motor-side files", tx40.figures, needs_data=True),
        Study("kr300", "The KR300 in closed loop, on held-out runs", kr300.figures, needs_data=True),
        Study(
            "kr300-flexible",
            "Stiffness of the KR300 from its two encoders per axis, on a held-out run",
            kr300_flexible.figures,
            needs_data=True,
        ),
        Study(
            "servo-friction",
            "Hobby servos on a known pendulum: friction models on held-out runs",
            servo_friction.figures,
            needs_data=True,
        ),
        Study(
            "so101",
            "A hobby arm from commands and encoders: signs, servo, backlash, held-out motion",
            so101.figures,
            needs_data=True,
        ),
        Study("tx40-filters", "The recorded TX40 with good and bad filters", tx40_filters.figures, needs_data=True),
        Study(
            "legs",
            "A quadruped and a biped on the ground: unknown contact forces",
            legs.figures,
        ),
        Study(
            "fleet",
            "A simulated fleet of 100 arms on 20 dates: drift, payloads, temperature",
            fleet.figures,
        ),
        Study(
            "fleet-real", "A UR10e over five months and three pendulums as fleets", fleet_real.figures, needs_data=True
        ),
        Study(
            "geometry-postures",
            "Postures of a geometric calibration: designed ones against twice as many random ones",
            geometry_postures.figures,
        ),
        Study("drives", "Drive gains and payloads of a UR10e and a surgical arm", drives.figures, needs_data=True),
        Study("friction-robots", "Real robots with selected friction models", friction_robots.figures, needs_data=True),
        Study("robots", "Every real robot with default settings", robots.figures, needs_data=True),
        Study(
            "between-runs",
            "Differences between runs of real machines beside their 95 % intervals",
            between_runs.figures,
            needs_data=True,
        ),
        Study("halves", "First against second half of every real recording", halves.figures, needs_data=True),
        Study(
            "bodies",
            "Total mass and every body of real machines and of ten public arms",
            bodies.figures,
            needs_data=True,
        ),
        Study(
            "real-verdicts",
            "Verdicts on every real recording, with the reasons",
            real_verdicts.figures,
            needs_data=True,
        ),
        Study("horizon", "Simulated against measured motion of every real robot", horizon.figures, needs_data=True),
        Study("residual-robots", "Real robots with learned residual torques", residual_robots.figures, needs_data=True),
        Study("feasible-robots", "Feasible estimates of every real robot", feasible_robots.figures, needs_data=True),
    ]
    return {study.name: study for study in found}


def find_study(name: str) -> Study:
    known = studies()
    if name not in known:
        raise DataError(f"no reproduction is named '{name}', there are {', '.join(known)}{did_you_mean(name, known)}")
    return known[name]
