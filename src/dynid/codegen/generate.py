"""Generated code of a robot's dynamics: the public function, its checks and its result."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.codegen.c import emit_c
from dynid.codegen.casadi_function import casadi_function, emit_casadi
from dynid.codegen.compiled import CompiledCode, compile_c
from dynid.codegen.functions import FUNCTIONS, Function, build_function
from dynid.codegen.jax_file import emit_jax
from dynid.codegen.julia_file import emit_julia
from dynid.codegen.linkage import build_linkage, closed_function
from dynid.codegen.matlab_file import emit_matlab
from dynid.codegen.numpy_file import emit_numpy
from dynid.codegen.operations import Operations
from dynid.codegen.program import Program
from dynid.codegen.tensor_file import TENSOR_FUNCTIONS, tensor_function
from dynid.codegen.torch_file import emit_torch
from dynid.errors import (
    DataError,
    InvalidShape,
    InvalidType,
    InvalidValue,
    MissingArgument,
    NotApplicable,
    UnknownName,
    did_you_mean,
    keyword,
    named,
)
from dynid.export.label import label_of
from dynid.feasibility.queries import is_feasible
from dynid.files import make_folder, write_text
from dynid.identification.estimate import Estimate
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import casadi as ca

__all__ = ["EMITTERS", "GeneratedCode", "casadi_functions", "generate_code"]

Array = NDArray[np.float64]

PARAMETERS = ("standard", "base", "symbolic", "symbolic-base")
# Language -> function from a program to the texts of its files.
EMITTERS: dict[str, Callable[[Program], Mapping[str, str]]] = {
    "c": emit_c,
    "python": emit_numpy,
    "julia": emit_julia,
    "matlab": emit_matlab,
    "casadi": emit_casadi,
    "torch": emit_torch,
    "jax": emit_jax,
}
# Libraries of tensors: the parameters are an argument, and the functions have no expression graph.
_TENSORS = ("torch", "jax")
_TITLES = {
    "c": "C",
    "python": "Python",
    "julia": "Julia",
    "matlab": "MATLAB",
    "casadi": "CasADi",
    "torch": "PyTorch",
    "jax": "JAX",
}


@dataclass(frozen=True, eq=False)
class GeneratedCode:
    """Generated source code of a robot's dynamics.

    Attributes
    ----------
    language : str
        "c", "python", "julia", "matlab", "casadi", "torch" or "jax".
    files : dict of str to str
        Text of each source file by its name.
    operations : dict of str to Operations
        Number of additions, multiplications and other operations of each function. With closed loops, those of the
        tree's dynamics, without the passive joints and the projection. Empty for PyTorch and JAX.
    program : Program
        Expression graphs that the texts were written from.
    warnings : tuple of str
        The verdict on the estimate where it is not "trusted".
    """

    language: str
    files: dict[str, str]
    operations: dict[str, Operations]
    program: Program
    warnings: tuple[str, ...] = ()

    def write(self, folder: str | Path) -> tuple[Path, ...]:
        """Write all files into a folder.

        Parameters
        ----------
        folder : str or Path
            Folder to write to. It is created if it does not exist.

        Returns
        -------
        tuple of Path
            Paths of the files.
        """
        folder = Path(folder)
        make_folder(folder)
        paths = []
        for name, text in self.files.items():
            write_text(folder / name, text)
            paths.append(folder / name)
        return tuple(paths)

    def compile(self, flags: Sequence[str] = ("-O2",)) -> CompiledCode:
        """Compile the C code with the local C compiler and load it, so that Python can call it.

        Parameters
        ----------
        flags : sequence of str, default ("-O2",)
            Compiler flags.

        Returns
        -------
        CompiledCode
            The loaded functions; `call(name, q, ...)` evaluates one over a batch of samples.

        Raises
        ------
        DataError
            If the code is not C, no compiler is found, or the compiler fails.

        Examples
        --------
        >>> import dynid
        >>> code = dynid.generate_code(dynid.load_robot("twolink"), ("gravity_torque",))
        >>> code.compile().call("gravity_torque", [[0.0, 0.0], [0.5, 0.1]]).shape
        (2, 2)
        """
        return compile_c(self.files, self.program, self.language, flags)

    def __repr__(self) -> str:
        return f"GeneratedCode('{self.program.name}', {self.language}, {', '.join(self.operations)})"


def generate_code(
    robot: Robot | Estimate,
    functions: Sequence[str] = ("inverse_dynamics",),
    *,
    language: str = "c",
    parameters: str | None = None,
    values: ArrayLike | None = None,
    law: ActuatorLaw | None = None,
    name: str | None = None,
    date: str = "",
    notes: Sequence[str] = (),
    sines: str = "inline",
    allow_infeasible: bool = False,
    untrusted: bool = False,
) -> GeneratedCode:
    """Generate straight-line code of the dynamics of a robot or of an identified robot.

    For a robot with closed loops, the functions have a further argument `posture`, from which the loops are closed; the
    C functions move it and return a status.

    Parameters
    ----------
    robot : Robot or Estimate
        The robot, or an estimate whose identified parameters are used.
    functions : sequence of str or "all", default ("inverse_dynamics",)
        Functions to generate: inverse_dynamics, forward_dynamics, mass_matrix, coriolis_matrix, coriolis_torque,
        gravity_torque, bias_torque, drive_torque, regressor.
    language : {"c", "python", "julia", "matlab", "casadi", "torch", "jax"}, default "c"
        C99, one NumPy file, a Julia module, MATLAB functions, serialized CasADi functions, or one file of functions
        that PyTorch or JAX differentiates.
    parameters : {"standard", "base", "symbolic", "symbolic-base"}, optional
        "standard" folds the standard parameters into the code; "base" uses the base parameters only and gives the same
        torques; the symbolic forms take them as an argument array `parms`. By default "symbolic" for PyTorch and JAX,
        where they can be trained, and "standard" otherwise.
    values : array_like, optional
        Parameter values that replace those of the robot: standard (p,), or base (b,) with "base". SI units.
    law : ActuatorLaw, optional
        Law of the actuators, for PyTorch and JAX: the file then has the functions actuator_torque, forward_dynamics
        and forward_dynamics_under_law as well.
    name : str, optional
        Prefix of files and functions; by default the robot's name.
    date : str, default ""
        Date for the header of the files. The same call gives the same files.
    notes : sequence of str
        Further lines for the header.
    sines : {"inline", "library"}, default "inline"
        C code only: sine and cosine together from inline series (accurate to 2e-16, faster), or from math.h.
    allow_infeasible : bool, default False
        Accept parameters that are not physically consistent. They are refused otherwise.
    untrusted : bool, default False
        Write code of an estimate whose verdict is "do not use". It is refused otherwise.

    Returns
    -------
    GeneratedCode
        Source files, operation counts, and the means to write or compile them.

    Raises
    ------
    DataError
        If an option is unknown, the values have the wrong size, the parameters are refused, or the verdict on the
        estimate is "do not use".

    Examples
    --------
    >>> import dynid
    >>> code = dynid.generate_code(dynid.load_robot("twolink"), ("mass_matrix",))
    >>> sorted(code.files), code.operations["mass_matrix"].multiplications
    (['twolink.c', 'twolink.h'], 1)
    """
    estimate = robot if isinstance(robot, Estimate) else None
    model = robot.robot if isinstance(robot, Estimate) else robot
    if language not in EMITTERS:
        raise UnknownName(f"{named('language')} '{language}' is unknown: use {', '.join(EMITTERS)}")
    if model.loops and language not in ("c", "python"):
        raise NotApplicable(
            f"code of a robot with closed loops is written in C and in Python, not in {_TITLES[language]}", "language"
        )
    if parameters is None:
        parameters = "symbolic" if language in _TENSORS else "standard"
    if parameters not in PARAMETERS:
        raise UnknownName(f"{named('parameters')} '{parameters}' is unknown: use {', '.join(PARAMETERS)}")
    if language in _TENSORS and not parameters.startswith("symbolic"):
        raise NotApplicable(
            f"the parameters are an argument in {_TITLES[language]}: use symbolic or symbolic-base", "parameters"
        )
    if sines not in ("inline", "library"):
        raise UnknownName(f"sines '{sines}' is unknown: use inline or library", "sines")
    label = label_of(robot, untrusted)
    wanted = _wanted(functions, tuple(FUNCTIONS) if language not in _TENSORS else TENSOR_FUNCTIONS)
    if law is not None:
        law = _law(law, model, language)
        wanted = tuple(dict.fromkeys((*wanted, "forward_dynamics")))
    title = _identifier(model.name) if name is None else _checked_name(name)
    base = None
    if parameters.endswith("base"):
        base = _whole_base(estimate.base) if estimate else base_parameters(model)
    if base is not None and functions != "all":
        for function in wanted:
            _refuse_mixed(base, function)
    elif base is not None:
        wanted = tuple(f for f in wanted if _mixed(base, f) is None)
    numbers = _numbers(model, estimate, base, values)
    used = not parameters.startswith("symbolic") or language in _TENSORS
    flaw = _infeasible(model, base, numbers) if used else ""
    if flaw and not allow_infeasible:
        raise DataError(
            f"{flaw}: use physically consistent ones, from method 'feasible' or "
            f"dynid.feasibility.nearest_feasible, or say {keyword('allow_infeasible', True)}",
            code="untrusted",
        )
    names, units = model.parameter_names, tuple(p.unit for p in model.layout)
    if base is not None:
        names, units = base.names, tuple(units[k] for k in base.kept)
    kept = None if base is None else base.kept
    places = None
    if parameters.startswith("symbolic"):
        places = range(len(model.layout)) if kept is None else kept
    standard = numbers if base is None else base.join(numbers)

    def make(function: str) -> Function:
        """The function of the robot, or of its tree if it has closed loops."""
        given = None if places is not None else standard
        return build_function(function, model.tree, given, places, kept, of_linkage=bool(model.loops))

    linkage = build_linkage(model, wanted, make) if model.loops else None
    if language in _TENSORS:
        made = tuple(tensor_function(model, function, len(names)) for function in wanted)
    elif linkage is None:
        made = tuple(make(function) for function in wanted)
    else:
        symbols = None if places is None else len(places)
        made = tuple(closed_function(model, linkage, function, symbols) for function in wanted)
    head = (
        *_notes(model, estimate, date),
        *(() if label is None else (label if used and base is None else label.without_bodies()).lines()),
        *notes,
        *([f"Beware: {flaw}."] if flaw else []),
    )
    program = Program(
        model, title, made, parameters, names, units, numbers, head, sines, linkage, tuple(places or ()), law
    )
    files = dict(EMITTERS[language](program))
    operations = {} if language in _TENSORS else {f.name: program.operations(f) for f in made}
    return GeneratedCode(language, files, operations, program, () if label is None else tuple(label.warnings))


def casadi_functions(
    robot: Robot | Estimate,
    functions: Sequence[str] = ("inverse_dynamics", "forward_dynamics", "mass_matrix"),
    *,
    parameters: str = "standard",
    values: ArrayLike | None = None,
    name: str | None = None,
    allow_infeasible: bool = False,
    untrusted: bool = False,
) -> dict[str, ca.Function]:
    """CasADi functions (SX) of the dynamics of a robot or an estimate.

    Parameters
    ----------
    robot : Robot or Estimate
        The robot, or an estimate whose identified parameters are used.
    functions : sequence of str, default ("inverse_dynamics", "forward_dynamics", "mass_matrix")
        Functions to build, as for `generate_code`.
    parameters : {"standard", "base", "symbolic", "symbolic-base"}, default "standard"
        As for `generate_code`.
    values : array_like, optional
        Standard (p,) or base (b,) parameter values that replace those of the robot. SI units.
    name : str, optional
        Prefix of the function names; by default the robot's name.
    allow_infeasible : bool, default False
        Accept parameters that are not physically consistent.
    untrusted : bool, default False
        Build functions of an estimate whose verdict is "do not use". It is refused otherwise.

    Returns
    -------
    dict of str to casadi.Function
        Inputs are named q, v, a, tau and parms, outputs tau, Y, M, C and a. Forward dynamics has a second output
        `pivots`, which is positive where the mass matrix is positive definite.

    Raises
    ------
    DataError
        If CasADi is not installed (`pip install dynid[symbolic]`), or as for `generate_code`.
    """
    code = generate_code(
        robot,
        functions,
        language="casadi",
        parameters=parameters,
        values=values,
        name=name,
        allow_infeasible=allow_infeasible,
        untrusted=untrusted,
    )
    return {f.name: casadi_function(code.program, f) for f in code.program.functions}


def _wanted(functions: Sequence[str], every: tuple[str, ...]) -> tuple[str, ...]:
    wanted = (functions,) if isinstance(functions, str) else tuple(functions)
    if wanted == ("all",):
        return every
    for function in wanted:
        if function not in FUNCTIONS:
            hint = did_you_mean(function, FUNCTIONS)
            raise UnknownName(f"no function is named '{function}', there are {', '.join(FUNCTIONS)}{hint}", "functions")
    if not wanted:
        raise MissingArgument(f"name at least one function: {', '.join(FUNCTIONS)}", "functions")
    return tuple(dict.fromkeys(wanted))


def _law(law: ActuatorLaw, robot: Robot, language: str) -> ActuatorLaw:
    """The law of the robot's joints, in their order."""
    if language not in _TENSORS:
        raise NotApplicable(f"the law of the actuators is written in PyTorch and JAX, not in {_TITLES[language]}")
    return law.of(robot.coordinates)


def _checked_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidValue(f"'{name}' cannot be a name in code: use letters, digits and underscores", "name")
    return name


def _identifier(name: str) -> str:
    """The robot's name as an identifier."""
    out = re.sub(r"[^A-Za-z0-9_]", "_", name) or "robot"
    return out if not out[0].isdigit() else f"robot_{out}"


def _whole_base(base: BaseParameters) -> BaseParameters:
    """The base parameters, if their channels identify as much as all channels do."""
    if base.channels == base.robot.channels:
        return base
    every = base_parameters(base.robot).count
    if base.count < every:
        raise NotApplicable(
            f"these {base.count} base parameters come from {len(base.channels)} of {len(base.robot.channels)} "
            f"channels; {every - base.count} of {every} are not identified: use {keyword('parameters', 'standard')}"
        )
    return base


# Functions that return one part of the torque: a base parameter that adds drive and body terms has no place in them.
_PARTS = {
    "drive_torque": tuple(TermKind),
    "gravity_torque": (TermKind.OFFSET, TermKind.SPRING),
    "bias_torque": (TermKind.OFFSET, TermKind.SPRING),
}


def _mixed(base: BaseParameters, function: str) -> str | None:
    """The first base parameter that adds drive and body parameters, which the function must separate."""
    layout = base.robot.layout
    kinds = {t.name: t.kind for t in base.robot.drives}
    for row, name in zip(base.matrix, base.names, strict=True):
        on = [layout[k] for k in np.flatnonzero(row)]
        drives = [kinds[p.name] for p in on if not p.inertial]
        if len(drives) < len(on) and any(kind in _PARTS.get(function, ()) for kind in drives):
            return name
    return None


def _refuse_mixed(base: BaseParameters, function: str) -> None:
    name = _mixed(base, function)
    if name is not None:
        raise NotApplicable(
            f"{function} cannot be computed from base parameters alone: '{name}' adds drive and body parameters; "
            f"use {keyword('parameters', 'standard')}"
        )


def _numbers(robot: Robot, estimate: Estimate | None, base: BaseParameters | None, values: ArrayLike | None) -> Array:
    if values is not None:
        size, kind = (base.count, "base") if base is not None else (len(robot.layout), "standard")
        try:
            out = np.array(values, dtype=float)
        except (TypeError, ValueError):
            raise InvalidType(f"values must be numbers, got {values!r:.60}") from None
        if out.shape != (size,):
            raise InvalidShape(f"expected {size} {kind} parameters, got shape {out.shape}")
        if not np.all(np.isfinite(out)):
            raise InvalidValue("values: a number is not finite")
        return out
    if base is not None:
        return estimate.beta if estimate else base.values()
    return estimate.parameters if estimate else robot.parameters


def _infeasible(robot: Robot, base: BaseParameters | None, numbers: Array) -> str:
    """Why no physical robot has these parameters; empty if one may have them."""
    verdict = is_feasible(base, numbers) if base is not None else is_feasible(robot, numbers)
    if verdict.status != "infeasible":
        return ""
    why = "; ".join(verdict.reasons[:2]) or f"margin {verdict.margin:.3g}"
    if base is not None and verdict.reasons:  # conditions that exclude each other, none of them broken by itself
        why = f"cannot be met: {why}"
    return f"no physical robot has these parameters ({why})"


def _notes(robot: Robot, estimate: Estimate | None, date: str) -> list[str]:
    out = [f"Date: {date}"] if date else []
    if robot.source:
        out.append(f"Source: {' '.join(robot.source.split())}")
    if estimate is not None:
        errors = ", ".join(
            f"{c} {100 * e:.3g} %" for c, e in zip(estimate.base.channels, estimate.relative_error, strict=True)
        )
        out.append(f"Identified by {estimate.method} ({estimate.status}) from {sum(estimate.rows)} rows.")
        out.append(f"Relative error of the fit: {errors}.")
    return out
