"""`FlexibleEstimate`: stiffness, damping and motor inertia of joints, with all other parameters of the robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.attached import attached
from dynid.errors import DamagedFile, DynidError, Mismatch, WrongFormat
from dynid.files import write_text
from dynid.flexible.rows import EncoderError, FlexibleModel, Unknowns
from dynid.flexible.solve import StiffnessKind, StiffnessTest
from dynid.hypothesis import probability
from dynid.identification.summary import validation_text
from dynid.identification.validation_errors import Validation
from dynid.markup import HtmlFrame, html_table
from dynid.quoting import toml_key
from dynid.results import Reading
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_to_dict, stored_robot
from dynid.saved import envelope, plain_data, read_saved, write_saved
from dynid.signals.settings import Signals
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl

    from dynid.flexible.solve import StiffnessTest
    from dynid.parameters.base import BaseParameters
    from dynid.recording.recording import Recording

__all__ = [
    "FlexibleEstimate",
    "FlexibleValidation",
    "LinkErrors",
    "Sides",
    "flexible_html",
    "flexible_text",
    "flexible_to_dict",
    "load_flexible",
    "save_flexible",
    "validation_tables",
]

Array = NDArray[np.float64]


class Sides(StrEnum):
    """Encoders that flexible joints were identified from."""

    BOTH = "both"
    MOTOR = "motor"


@dataclass(frozen=True, eq=False)
class LinkErrors:
    """Errors of link positions that are predicted from the motors alone, root mean square per joint.

    The mean of the error of a run is the offset of its encoders and is not counted.

    Attributes
    ----------
    joints : tuple of str
        Flexible joints with link encoders.
    units : tuple of str
        rad or m.
    flexible : ndarray, shape (joint,)
        Error of the identified joints, with their springs and encoder errors.
    encoder : ndarray, shape (joint,)
        Error of rigid joints with the same encoder errors: what the springs add is the difference.
    rigid : ndarray, shape (joint,)
        Error of rigid joints: the link moves as the motor.
    """

    joints: tuple[str, ...]
    units: tuple[str, ...]
    flexible: Array
    encoder: Array
    rigid: Array


@dataclass(frozen=True, eq=False)
class FlexibleValidation(HtmlFrame):
    """Errors of flexible joints on other motion.

    Attributes
    ----------
    torque : Validation
        Errors of the predicted torques per joint.
    links : LinkErrors or None
        Errors of the predicted link positions; None without link encoders.
    """

    torque: Validation
    links: LinkErrors | None

    def to_frame(self) -> pl.DataFrame:
        """The errors of the predicted torques as a table.

        Returns
        -------
        polars.DataFrame
            As `Validation.to_frame`, with link_error and rigid_link_error (rad or m) where links have encoders.
        """
        import polars as pl

        table = self.torque.to_frame()
        if self.links is None:
            return table
        links = {"channel": self.links.joints, "link_error": self.links.flexible, "rigid_link_error": self.links.rigid}
        return table.join(pl.DataFrame(links), on="channel", how="left", maintain_order="left")

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data.

        Returns
        -------
        dict
        """
        links = None
        if self.links is not None:
            errors = zip(self.links.flexible, self.links.encoder, self.links.rigid, self.links.units, strict=True)
            links = {
                joint: {"flexible": float(f), "encoder": float(e), "rigid": float(r), "unit": unit}
                for joint, (f, e, r, unit) in zip(self.links.joints, errors, strict=True)
            }
        return {"torque": self.torque.to_dict(), "links": links}

    def summary(self) -> str:
        """Tables of the errors, as wide as the terminal.

        Returns
        -------
        str
        """
        return validation_tables(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class FlexibleEstimate:
    """Identified flexible joints with all other parameters of the robot.

    Attributes
    ----------
    model : FlexibleModel
        The robot, its flexible joints and the friction of their links.
    sides : Sides
        Encoders that were used: those of motors and links, or of motors only.
    x : ndarray, shape (u,)
        All unknowns: base parameters of the link side, parameters of the motors, compliance and lagging of the
        springs, offsets and other errors of the link encoders.
    covariance : ndarray, shape (u, u)
        Their covariance, from blocks of time.
    freedom : float
        Degrees of freedom of the standard deviations.
    runs : int
        Number of encoder offsets per joint.
    errors : tuple of EncoderError
        Errors of link encoders, beside offsets, that were estimated.
    delays : ndarray, shape (flexible joint,)
        Delay of each link encoder behind the motor encoder in s.
    parameters : ndarray, shape (p,)
        Physically consistent standard parameters of the link side, `model.links`, as close to the data as possible.
    noise : ndarray, shape (channel,)
        Standard deviation of the residual per joint torque (N m or N), then per deflection (rad or m).
    rows : tuple of int
        Number of rows per channel.
    iterations : int
        Gauss-Newton iterations.
    converged : bool
        Whether they converged.
    signals : Signals
        How the runs were filtered.
    tests : tuple of StiffnessTest
        Tests of nonlinear stiffness, where they were asked for.
    notes : tuple of str
        What to know about the estimate.
    """

    model: FlexibleModel
    sides: Sides
    x: Array
    covariance: Array = field(repr=False)
    freedom: float
    runs: int
    errors: tuple[EncoderError, ...]
    delays: Array
    parameters: Array = field(repr=False)
    noise: Array
    rows: tuple[int, ...]
    iterations: int
    converged: bool
    signals: Signals
    tests: tuple[StiffnessTest, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.model.robot

    @property
    def joints(self) -> tuple[str, ...]:
        """The flexible joints."""
        return self.model.joints

    @property
    def base(self) -> BaseParameters:
        """Base parameters of the link side, with their expressions."""
        return self.model.base

    @cached_property
    def unknowns(self) -> Unknowns:
        """Places of the unknowns in `x`."""
        return Unknowns.of(self.model, self.runs, self.errors)

    @property
    def std(self) -> Array:
        """Standard deviations (u,) of the unknowns."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def beta(self) -> Array:
        """Base parameters (b,) of the link side."""
        return self.x[: self.unknowns.links]

    @property
    def beta_std(self) -> Array:
        """Standard deviations (b,) of the base parameters."""
        return self.std[: self.unknowns.links]

    @property
    def compliance(self) -> Array:
        """Compliances (flexible joint,), rad/(N m) or m/N."""
        return self.x[self.unknowns.compliance]

    @property
    def compliance_std(self) -> Array:
        """Standard deviations (flexible joint,) of the compliances."""
        return self.std[self.unknowns.compliance]

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether the compliance of each joint is above zero by more than its 95 % interval."""
        limit = float(scipy.stats.t.ppf(0.975, self.freedom))
        return np.asarray(self.compliance > limit * self.compliance_std)

    @property
    def stiffness(self) -> Array:
        """Stiffness (flexible joint,), N m/rad or N/m; infinite where no elasticity is seen."""
        return np.asarray(np.where(self.seen, 1.0 / np.where(self.seen, self.compliance, 1.0), np.inf))

    @property
    def stiffness_std(self) -> Array:
        """Standard deviations (flexible joint,) of the stiffness; infinite where no elasticity is seen."""
        return np.asarray(np.where(self.seen, self.compliance_std * self.stiffness**2, np.inf))

    @property
    def damping(self) -> Array:
        """Damping (flexible joint,), N m s/rad or N s/m; NaN where no elasticity is seen."""
        k = np.where(self.seen, self.stiffness, np.nan)
        return np.asarray(self.x[self.unknowns.lagging] * k**2)

    @property
    def damping_std(self) -> Array:
        """Standard deviations (flexible joint,) of the damping; NaN where no elasticity is seen."""
        u = self.unknowns
        out = []
        for k in range(u.flexible):
            i, j = u.compliance.start + k, u.lagging.start + k
            c, e = self.x[i], self.x[j]
            slope = np.array([-2 * e / c**3, 1 / c**2])
            part = self.covariance[np.ix_([i, j], [i, j])]
            out.append(float(np.sqrt(max(slope @ part @ slope, 0.0))) if self.seen[k] else np.nan)
        return np.array(out)

    @cached_property
    def motor_parameters(self) -> Mapping[str, float]:
        """Parameters of the motors of flexible joints by name: rotor inertia, friction, offset."""
        b = self.unknowns.links
        return {name: float(x) for name, x in zip(self.model.motor_names, self.x[b:], strict=False)}

    @cached_property
    def motor_std(self) -> Mapping[str, float]:
        """Standard deviations of the parameters of motors by name."""
        b = self.unknowns.links
        return {name: float(x) for name, x in zip(self.model.motor_names, self.std[b:], strict=False)}

    @property
    def motor_inertia(self) -> Array:
        """Rotor inertia (flexible joint,) on the joint side, kg m2 or kg; NaN where the robot has none."""
        return np.array([self.motor_parameters.get(f"Ia_{name}", np.nan) for name in self.joints])

    @property
    def motor_inertia_std(self) -> Array:
        """Standard deviations (flexible joint,) of the rotor inertia."""
        return np.array([self.motor_std.get(f"Ia_{name}", np.nan) for name in self.joints])

    @property
    def offsets(self) -> Array:
        """Offsets (flexible joint, run) between the encoders, motor minus link, rad or m."""
        u = self.unknowns
        return np.array([[self.x[u.offset(k, r)] for r in range(u.runs)] for k in range(u.flexible)])

    @property
    def identified_robot(self) -> Robot:
        """The link side with its physically consistent standard parameters; friction of links included."""
        return self.model.links.with_parameters(self.parameters)

    def interval(self, joint: str) -> tuple[float, float]:
        """The 95 % interval of the stiffness of a joint; the upper end may be infinite."""
        k = self.joints.index(joint)
        limit = float(scipy.stats.t.ppf(0.975, self.freedom)) * self.compliance_std[k]
        low, high = self.compliance[k] - limit, self.compliance[k] + limit
        return (1.0 / high if high > 0 else np.inf, 1.0 / low if low > 0 else np.inf)

    def validate(self, recording: Recording) -> FlexibleValidation:
        """Predict torques and link positions of other motion.

        Parameters
        ----------
        recording : Recording
            Runs with torques and, for errors of link positions, link encoders.

        Returns
        -------
        FlexibleValidation
        """
        found: FlexibleValidation = attached(self, "validate")(self, recording)
        return found

    def to_frame(self) -> pl.DataFrame:
        """Springs and motors as a table.

        Returns
        -------
        polars.DataFrame
            One row per flexible joint: joint, stiffness, damping, motor_inertia and their standard deviations, in
            SI units.
        """
        import polars as pl

        names = ("stiffness", "damping", "motor_inertia")
        columns = {x: getattr(self, x) for name in names for x in (name, f"{name}_std")}
        return pl.DataFrame({"joint": self.joints, **columns})

    def summary(self) -> str:
        """Tables of springs, motors and base parameters, as wide as the terminal.

        Returns
        -------
        str
        """
        return flexible_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data.

        Returns
        -------
        dict
        """
        return flexible_to_dict(self)

    def save(self, path: str | Path) -> None:
        """Write the estimate: all of it as JSON, or stiffness, damping and motors as TOML.

        Parameters
        ----------
        path : path
            A file that ends in .json or .toml; `load_flexible` reads the JSON file.
        """
        save_flexible(self, path)

    def _repr_html_(self) -> str:
        return flexible_html(self)


def flexible_to_dict(estimate: FlexibleEstimate) -> dict[str, Any]:
    """The complete estimate as plain data that JSON can hold; numbers that are not finite are words."""
    base = estimate.base
    plain: dict[str, Any] = plain_data(
        {
            **envelope("flexible"),
            "joints": {
                joint: {
                    "stiffness": estimate.stiffness[k],
                    "stiffness_std": estimate.stiffness_std[k],
                    "damping": estimate.damping[k],
                    "damping_std": estimate.damping_std[k],
                    "motor_inertia": estimate.motor_inertia[k],
                    "motor_inertia_std": estimate.motor_inertia_std[k],
                    "delay": estimate.delays[k],
                }
                for k, joint in enumerate(estimate.joints)
            },
            "base_parameters": [
                {"expression": text, "unit": unit, "value": x, "std": s}
                for text, unit, x, s in zip(base.expressions, base.units, estimate.beta, estimate.beta_std, strict=True)
            ],
            "motor_parameters": dict(estimate.motor_parameters),
            "tests": [
                {"joint": t.joint, "kind": t.kind.value, "size": t.size, "std": t.std, "p_value": t.p_value}
                for t in estimate.tests
            ],
            "notes": estimate.notes,
            "sides": estimate.sides.value,
            "link_friction": estimate.model.link_friction,
            "errors": [e.value for e in estimate.errors],
            "names": [*base.names, *estimate.model.motor_names],
            "x": estimate.x,
            "covariance": estimate.covariance,
            "freedom": estimate.freedom,
            "runs": estimate.runs,
            "delays": estimate.delays,
            "parameters": estimate.parameters,
            "noise": estimate.noise,
            "rows": estimate.rows,
            "iterations": estimate.iterations,
            "converged": estimate.converged,
            "signals": estimate.signals.to_dict(),
            "robot": robot_to_dict(estimate.robot),
        }
    )
    return plain


def save_flexible(estimate: FlexibleEstimate, path: str | Path) -> None:
    """Write an estimate as JSON, or its stiffness, damping and motors as TOML."""
    path = Path(path)
    if path.suffix == ".json":
        write_saved(path, flexible_to_dict(estimate))
    elif path.suffix == ".toml":
        write_text(path, _toml(estimate))
    else:
        raise WrongFormat(f"flexible joints are written as .json or .toml, not '{path.name}'")


def load_flexible(path: str | Path, robot: Robot | None = None) -> FlexibleEstimate:
    """Read the JSON file of identified flexible joints.

    Parameters
    ----------
    path : str or Path
        The file.
    robot : Robot, optional
        The robot, needed if it has terms that are functions, which no file holds.

    Returns
    -------
    FlexibleEstimate

    Raises
    ------
    DataError
        If the file cannot be read, is damaged, or belongs to another robot.
    """
    data, where = read_saved(path, "flexible"), f"'{path}'"
    try:
        return _estimate(data, stored_robot(data["robot"], Reading(where, robot, "load_flexible")), where)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedFile(f"{where} is damaged: {type(error).__name__} {error}") from None


def _estimate(data: Mapping[str, Any], robot: Robot, where: str) -> FlexibleEstimate:
    model = FlexibleModel(robot, tuple(data["joints"]), data["link_friction"])
    if list(data["names"]) != [*model.base.names, *model.motor_names]:
        raise Mismatch(f"{where} belongs to another robot: its base parameters differ")
    arrays = {name: np.array(data[name], dtype=float) for name in ("x", "covariance", "delays", "parameters", "noise")}
    found = FlexibleEstimate(
        model=model,
        sides=Sides(data["sides"]),
        freedom=float(data["freedom"]),
        runs=int(data["runs"]),
        errors=tuple(EncoderError(e) for e in data["errors"]),
        rows=tuple(data["rows"]),
        iterations=int(data["iterations"]),
        converged=bool(data["converged"]),
        signals=Signals.from_dict(data["signals"]),
        tests=tuple(
            StiffnessTest(
                str(t["joint"]), StiffnessKind(t["kind"]), float(t["size"]), float(t["std"]), float(t["p_value"])
            )
            for t in data["tests"]
        ),
        notes=tuple(data["notes"]),
        **arrays,
    )
    if found.x.shape != (found.unknowns.size,) or found.covariance.shape != (found.x.size, found.x.size):
        raise DynidError(
            f"{where} is damaged: {found.x.size} unknowns, {found.unknowns.size} expected", code="file_damaged"
        )
    return found


def _toml(estimate: FlexibleEstimate) -> str:
    """Stiffness, damping and motors of every flexible joint, with standard deviations and units."""
    lines = ["# Flexible joints, on the joint side: stiffness k and damping d between motor and link.", ""]
    for k, joint in enumerate(estimate.joints):
        linear = estimate.robot.channel_units[joint] == "N"
        units = ("N/m", "N s/m", "kg") if linear else ("N m/rad", "N m s/rad", "kg m2")
        values = (
            ("stiffness", estimate.stiffness[k], estimate.stiffness_std[k], units[0]),
            ("damping", estimate.damping[k], estimate.damping_std[k], units[1]),
            ("motor_inertia", estimate.motor_inertia[k], estimate.motor_inertia_std[k], units[2]),
        )
        lines.append(f"[joints.{toml_key(joint)}]")
        for name, value, std, unit in values:
            lines += [f"{name} = {float(value):.6g}  # {unit}", f"{name}_std = {float(std):.3g}"]
        lines.append("")
    return "\n".join(lines)


_SPRINGS = ("joint", "stiffness", "sigma %", "unit", "damping", "sigma", "unit ", "motor inertia", "sigma  ", "unit  ")
_OTHERS = ("parameter", "unit", "estimate", "sigma", "sigma %")
_TESTS = ("joint", "kind", "size", "sigma", "p")


def flexible_text(estimate: FlexibleEstimate) -> str:
    """Springs, then the other parameters, tests of linear stiffness and notes."""
    encoders = "motors and links" if estimate.sides == "both" else "motors only"
    title = f"{estimate.robot.name}: {len(estimate.joints)} flexible joints, encoders of {encoders}"
    springs = table_of(title, *_SPRINGS, text=("joint", "unit", "unit ", "unit  "))
    for row in _spring_rows(estimate):
        springs.add_row(*row)
    others = table_of("links and motors", *_OTHERS, text=("parameter", "unit"))
    for row in _other_rows(estimate):
        others.add_row(*row)
    tables: list[object] = [springs, others]
    if estimate.tests:
        table = table_of("nonlinear stiffness", *_TESTS, text=("joint", "kind"))
        for test in estimate.tests:
            shown = ("-", "-", "not excited") if np.isnan(test.p_value) else (f"{test.size:.2g}", f"{test.std:.2g}")
            table.add_row(test.joint, test.kind.value, *shown, *([] if len(shown) > 2 else [probability(test.p_value)]))
        tables.append(table)
    state = "converged" if estimate.converged else "not converged"
    closing = (
        f"{state} in {estimate.iterations} iterations; standard deviations from {estimate.freedom + 1:.0f} blocks of "
        "time; damping that is negative is not significant"
    )
    return rendered(*tables, closing, *estimate.notes)


def flexible_html(estimate: FlexibleEstimate) -> str:
    """The tables of springs and other parameters for a notebook."""
    return html_table("flexible joints", _SPRINGS, _spring_rows(estimate), "; ".join(estimate.notes)) + html_table(
        "links and motors", _OTHERS, _other_rows(estimate)
    )


def validation_tables(validation: FlexibleValidation) -> str:
    """Errors of torques, then of link positions."""
    text = validation_text(validation.torque)
    if validation.links is None:
        return text
    links = validation.links
    names = ("joint", "flexible", "rigid, encoder errors", "rigid", "unit")
    table = table_of("link positions from motor positions, RMS error", *names, text=("joint", "unit"))
    for joint, f, e, r, unit in zip(links.joints, links.flexible, links.encoder, links.rigid, links.units, strict=True):
        table.add_row(joint, f"{f:.3g}", f"{e:.3g}", f"{r:.3g}", unit)
    return text + rendered(table)


def _spring_rows(estimate: FlexibleEstimate) -> list[tuple[str, ...]]:
    out: list[tuple[str, ...]] = []
    for k, joint in enumerate(estimate.joints):
        linear = estimate.robot.channel_units[joint] == "N"
        units = ("N/m", "N s/m", "kg") if linear else ("N m/rad", "N m s/rad", "kg m2")
        if estimate.seen[k]:
            share = 100 * estimate.stiffness_std[k] / estimate.stiffness[k]
            spring = (f"{estimate.stiffness[k]:.4g}", f"{share:.2g}", units[0])
            damper = (f"{estimate.damping[k]:.3g}", f"{estimate.damping_std[k]:.2g}", units[1])
        else:
            spring = (f"> {estimate.interval(joint)[0]:.3g}", "-", units[0])
            damper = ("-", "-", units[1])
        inertia = (f"{estimate.motor_inertia[k]:.4g}", f"{estimate.motor_inertia_std[k]:.2g}", units[2])
        out.append((joint, *spring, *damper, *inertia))
    return out


def _other_rows(estimate: FlexibleEstimate) -> list[tuple[str, ...]]:
    base, model = estimate.base, estimate.model
    rows = list(zip(base.expressions, base.units, estimate.beta, estimate.beta_std, strict=True))
    units = {p.name: p.unit for p in model.motors.layout}
    rows += [
        (f"{name} (motor)", units[name], x, estimate.motor_std[name])
        for name, x in estimate.motor_parameters.items()
        if not name.startswith("Ia_")
    ]
    return [(name, unit, f"{x:.5g}", f"{s:.2g}", f"{100 * s / abs(x):.2g}" if x else "-") for name, unit, x, s in rows]
