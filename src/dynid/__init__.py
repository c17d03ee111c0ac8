"""dynid: from a robot description and its recorded motion to a dynamic model that can be trusted."""

from typing import TYPE_CHECKING

from dynid.public import load_when_asked

# Names are loaded when they are first asked for: most uses need a few, and all together take more than a second.
if TYPE_CHECKING:
    from dynid.capture.calibration import Calibration, calibrate_markers
    from dynid.capture.capture import Capture
    from dynid.capture.inverse_kinematics import InverseKinematics, inverse_kinematics
    from dynid.capture.load import load_capture
    from dynid.capture.plate import Plate
    from dynid.checks import Finding, check
    from dynid.checks.audit import Audit, audit
    from dynid.codegen.casadi_function import casadi_functions
    from dynid.codegen.generate import GeneratedCode, generate_code
    from dynid.codegen.symbolic import Equations, equations
    from dynid.dynamics.frames import frame_jacobian, frame_placement
    from dynid.dynamics.functions import (
        bias_torque,
        coriolis_matrix,
        coriolis_torque,
        forward_dynamics,
        gravity_torque,
        inverse_dynamics,
        kinetic_energy,
        kinetic_energy_regressor,
        mass_matrix,
        potential_energy,
        potential_energy_regressor,
        regressor,
    )
    from dynid.dynamics.gradient import check_gradient, regressor_adjoint
    from dynid.dynamics.momentum import centre_of_mass, momentum, total_mass
    from dynid.errors import DataError, DynidError, ModelError
    from dynid.excitation import clearances
    from dynid.excitation.design import design_excitation
    from dynid.excitation.excitation import Excitation
    from dynid.excitation.limits import MotionLimits, motion_limits
    from dynid.excitation.live import LiveExcitation, LiveScore
    from dynid.excitation.postures import Postures, select_postures
    from dynid.excitation.sequence import retimed, sequence, shortest_duration, with_ramps
    from dynid.excitation.standing import Standing, stand_on
    from dynid.export.mjcf import write_mjcf
    from dynid.export.parameters import load_parameters, write_parameters
    from dynid.export.sdf import write_sdf
    from dynid.export.urdf import write_urdf
    from dynid.feasibility import constraints
    from dynid.feasibility.centre import analytic_centre
    from dynid.feasibility.certificate import Certificate
    from dynid.feasibility.log_cholesky import refine_parameters
    from dynid.feasibility.possible import PossibleRobots, possible_robots
    from dynid.feasibility.questions import Nearest, Verdict, is_feasible, nearest_feasible, standard_parameters
    from dynid.feasibility.regression import fit_regressor
    from dynid.feasibility.shapes import bounding_ellipsoids
    from dynid.friction.fit import fit_every_friction, fit_friction
    from dynid.friction.map import FrictionMap, friction_map
    from dynid.friction.result import FrictionFit
    from dynid.friction.sweep import VelocitySweep, velocity_sweep
    from dynid.human.build import human_model
    from dynid.human.prior import with_anthropometric_prior, with_virtual_links
    from dynid.human.table import AnthropometricTable, anthropometric_table
    from dynid.identify.base import BaseParameters, base_parameters
    from dynid.identify.base_model import BaseModel
    from dynid.identify.calibration.result import SensorCalibration
    from dynid.identify.drive_gains import DriveGains, identify_drive_gains, reference_gains
    from dynid.identify.essential import Essential, essential_parameters
    from dynid.identify.estimate import Estimate
    from dynid.identify.experiment import Experiment
    from dynid.identify.identify import SequentialIdentification, estimate_closed_loop, identify
    from dynid.identify.observation import Observation, observe
    from dynid.identify.paired import Paired
    from dynid.identify.payload import Payload, identify_payload
    from dynid.identify.sensor_sets import Gain, SensorSet, SensorSets, one_more_sensor, sensor_sets
    from dynid.identify.sensors import calibrate_sensors
    from dynid.identify.shared import SharedEstimate, identify_shared
    from dynid.identify.static import StaticParameters, identify_in_steps, pressure_wrench, static_parameters
    from dynid.identify.validation import Validation, cross_validate
    from dynid.recording.base_motion import BaseMotion, base_from_foot, base_from_imu, base_from_matrices
    from dynid.recording.load import load_recording
    from dynid.recording.recording import Recording, Run
    from dynid.recording.wrench import WrenchSensor
    from dynid.residual.blend import Blend
    from dynid.residual.comparison import Comparison
    from dynid.residual.fit import fit_residual
    from dynid.residual.predictor import Predictor
    from dynid.residual.residual import Prediction, Residual
    from dynid.residual.rows import TorqueRows
    from dynid.residual.training import Training
    from dynid.robot.drives import DriveTerm, Transmission
    from dynid.robot.inertia import (
        inertia_from_com,
        inertia_from_log_cholesky,
        inertia_from_pseudo,
        inertia_from_spatial,
        inertia_to_com,
        inertia_to_log_cholesky,
        inertia_to_pseudo,
        inertia_to_spatial,
        inertia_violations,
        move_inertia,
        reorder_inertia,
    )
    from dynid.robot.load import builtin_robots, load_robot
    from dynid.robot.model import Robot
    from dynid.robot.parts import Joint, Limits, Link
    from dynid.robot.root import rooted_at
    from dynid.signals.settings import Signals
    from dynid.simulate import controllers
    from dynid.simulate.controller_identification import ControllerIdentification, IdentifiedLaw, identify_controller
    from dynid.simulate.energy import EnergyAudit, energy_audit
    from dynid.simulate.reference import Reference
    from dynid.simulate.sensors import Sensors
    from dynid.simulate.simulate import Loop, Simulation, simulate
    from dynid.simulate.unmodelled import Unmodelled
    from dynid.statistics.covariance import barrier_covariance, base_covariance, shortest_covariance
    from dynid.statistics.diagnosis import Diagnosis, diagnose
    from dynid.statistics.hausman import hausman_test
    from dynid.statistics.instruments import exogeneity_test, hansen, instrument_test, sargan, stretch
    from dynid.statistics.missing import MissingEffects, missing_effects
    from dynid.statistics.monte_carlo import monte_carlo
    from dynid.statistics.nested import f_test, terms_needed
    from dynid.statistics.residuals import Correlogram, ResidualTests, correlogram, residual_tests
    from dynid.statistics.result import HypothesisTest
    from dynid.statistics.scenario import Estimator, MonteCarloStudy, Scenario, perturbed_parameters
    from dynid.statistics.tables import MonteCarlo
    from dynid.verdict.judge import judge
    from dynid.verdict.judgement import Check, Judgement

__version__ = "0.1.0"

__all__ = [
    "AnthropometricTable",
    "Audit",
    "BaseModel",
    "BaseMotion",
    "BaseParameters",
    "Blend",
    "Calibration",
    "Capture",
    "Certificate",
    "Check",
    "Comparison",
    "ControllerIdentification",
    "Correlogram",
    "DataError",
    "Diagnosis",
    "DriveGains",
    "DriveTerm",
    "DynidError",
    "EnergyAudit",
    "Equations",
    "Essential",
    "Estimate",
    "Estimator",
    "Excitation",
    "Experiment",
    "Finding",
    "FrictionFit",
    "FrictionMap",
    "Gain",
    "GeneratedCode",
    "HypothesisTest",
    "IdentifiedLaw",
    "InverseKinematics",
    "Joint",
    "Judgement",
    "Limits",
    "Link",
    "LiveExcitation",
    "LiveScore",
    "Loop",
    "MissingEffects",
    "ModelError",
    "MonteCarlo",
    "MonteCarloStudy",
    "MotionLimits",
    "Nearest",
    "Observation",
    "Paired",
    "Payload",
    "Plate",
    "PossibleRobots",
    "Postures",
    "Prediction",
    "Predictor",
    "Recording",
    "Reference",
    "Residual",
    "ResidualTests",
    "Robot",
    "Run",
    "Scenario",
    "SensorCalibration",
    "SensorSet",
    "SensorSets",
    "Sensors",
    "SequentialIdentification",
    "SharedEstimate",
    "Signals",
    "Simulation",
    "Standing",
    "StaticParameters",
    "TorqueRows",
    "Training",
    "Transmission",
    "Unmodelled",
    "Validation",
    "VelocitySweep",
    "Verdict",
    "WrenchSensor",
    "analytic_centre",
    "anthropometric_table",
    "audit",
    "barrier_covariance",
    "base_covariance",
    "base_from_foot",
    "base_from_imu",
    "base_from_matrices",
    "base_parameters",
    "bias_torque",
    "bounding_ellipsoids",
    "builtin_robots",
    "calibrate_markers",
    "calibrate_sensors",
    "casadi_functions",
    "centre_of_mass",
    "check",
    "check_gradient",
    "clearances",
    "constraints",
    "controllers",
    "coriolis_matrix",
    "coriolis_torque",
    "correlogram",
    "cross_validate",
    "design_excitation",
    "diagnose",
    "energy_audit",
    "equations",
    "essential_parameters",
    "estimate_closed_loop",
    "exogeneity_test",
    "f_test",
    "fit_every_friction",
    "fit_friction",
    "fit_regressor",
    "fit_residual",
    "forward_dynamics",
    "frame_jacobian",
    "frame_placement",
    "friction_map",
    "generate_code",
    "gravity_torque",
    "hansen",
    "hausman_test",
    "human_model",
    "identify",
    "identify_controller",
    "identify_drive_gains",
    "identify_in_steps",
    "identify_payload",
    "identify_shared",
    "inertia_from_com",
    "inertia_from_log_cholesky",
    "inertia_from_pseudo",
    "inertia_from_spatial",
    "inertia_to_com",
    "inertia_to_log_cholesky",
    "inertia_to_pseudo",
    "inertia_to_spatial",
    "inertia_violations",
    "instrument_test",
    "inverse_dynamics",
    "inverse_kinematics",
    "is_feasible",
    "judge",
    "kinetic_energy",
    "kinetic_energy_regressor",
    "load_capture",
    "load_parameters",
    "load_recording",
    "load_robot",
    "mass_matrix",
    "missing_effects",
    "momentum",
    "monte_carlo",
    "motion_limits",
    "move_inertia",
    "nearest_feasible",
    "observe",
    "one_more_sensor",
    "perturbed_parameters",
    "possible_robots",
    "potential_energy",
    "potential_energy_regressor",
    "pressure_wrench",
    "reference_gains",
    "refine_parameters",
    "regressor",
    "regressor_adjoint",
    "reorder_inertia",
    "residual_tests",
    "retimed",
    "rooted_at",
    "sargan",
    "select_postures",
    "sensor_sets",
    "sequence",
    "shortest_covariance",
    "shortest_duration",
    "simulate",
    "stand_on",
    "standard_parameters",
    "static_parameters",
    "stretch",
    "terms_needed",
    "total_mass",
    "velocity_sweep",
    "with_anthropometric_prior",
    "with_ramps",
    "with_virtual_links",
    "write_mjcf",
    "write_parameters",
    "write_sdf",
    "write_urdf",
]

load_when_asked(__name__, __file__)
