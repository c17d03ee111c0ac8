"""Generated C compiled locally and called from Python, to check it against its source."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.codegen.c_linkage import STATUS
from dynid.codegen.functions import Function
from dynid.codegen.program import Program
from dynid.errors import (
    DynidError,
    Infeasible,
    InvalidShape,
    MissingArgument,
    MissingPackage,
    NotApplicable,
    UnknownName,
)

__all__ = ["STRICT", "CompiledCode", "compile_c", "find_compiler"]

Array = NDArray[np.float64]

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror")
_NOT_REACHED = {STATUS[code][0]: STATUS[code][1] for code in ("SINGULAR", "BROKEN", "FAR")}
_COMPILERS = ("cc", "gcc", "clang")


@dataclass(frozen=True, eq=False)
class CompiledCode:
    """A shared library of generated functions. It lies in memory only: nothing is left on the disk."""

    program: Program
    library: ctypes.CDLL

    def call(self, function: str, *arguments: ArrayLike) -> Array:
        """Result (N, ...) of a function for arguments (N, size), in the order of the C function; `parms` is (p,).

        The posture of a robot with closed loops starts at the assembled one and moves from sample to sample, as in
        `dynid.dynamics.assemble`.
        """
        made = {f.name: f for f in self.program.functions}
        if function not in made:
            raise UnknownName(f"'{function}' was not generated, there are {', '.join(made)}", "function")
        of = made[function]
        if len(arguments) != len(of.arguments):
            raise MissingArgument(f"{function} takes {', '.join(x.name for x in of.arguments)}")
        arrays = [_rows(x, a.size, a.name) for x, a in zip(arguments, of.arguments, strict=True)]
        samples = max(len(x) for x in arrays)
        out = np.empty((samples, int(np.prod(of.shape))))
        self._run(of, arrays, out)
        return out.reshape(samples, *of.shape)

    def _run(self, function: Function, arrays: Sequence[Array], out: Array) -> None:
        entry: Any = getattr(self.library, f"{self.program.name}_{function.name}")
        robot, loops = self.program.robot, self.program.linkage is not None
        entry.restype = ctypes.c_int if function.positive or loops else None
        steps = [x.strides[0] if len(x) > 1 else 0 for x in arrays]
        starts = [x.ctypes.data for x in arrays]
        posture = np.array(robot.assembled) if loops else np.zeros(0)
        if loops:  # one for all samples, moved from sample to sample
            steps, starts = [*steps, 0], [*starts, posture.ctypes.data]
        steps, starts = [*steps, out.strides[0]], [*starts, out.ctypes.data]
        entry.argtypes = [ctypes.c_void_p] * len(starts)
        for k in range(len(out)):
            places = [start + k * step for start, step in zip(starts, steps, strict=True)]
            failed = entry(*places)
            if loops and failed in _NOT_REACHED:
                posture[:] = robot.assembled
                failed = entry(*places)
            if loops and failed in _NOT_REACHED:
                raise Infeasible(f"'{robot.name}' cannot be assembled at sample {k}: {_NOT_REACHED[failed]}")
            if (function.positive or loops) and failed:
                raise DynidError(
                    f"the mass matrix of '{robot.name}' is not positive definite at sample {k}", code="infeasible"
                )


def find_compiler() -> str:
    """The local C compiler: the one named by CC, or the first of cc, gcc, clang."""
    named = os.environ.get("CC")
    for name in (named,) if named else _COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    tried = f"CC = {named}" if named else ", ".join(_COMPILERS)
    raise MissingPackage(f"no C compiler was found ({tried}): the code can be written, but not be compiled here")


def compile_c(files: Mapping[str, str], program: Program, language: str, flags: Sequence[str]) -> CompiledCode:
    """Compile and load C files; every warning is an error."""
    if language != "c":
        raise NotApplicable(f"only C can be compiled here, this code is {language}", "language")
    compiler = find_compiler()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        library = Path(folder) / f"{program.name}.so"
        command = [compiler, *STRICT, *flags, "-shared", "-fPIC", f"{program.name}.c", "-o", str(library), "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DynidError(
                f"{compiler} refused the generated code: {(done.stderr or done.stdout).strip()[:400]}",
                code="unsupported",
            )
        return CompiledCode(program, ctypes.CDLL(str(library)))


def _rows(given: ArrayLike, size: int, name: str) -> Array:
    out = np.ascontiguousarray(np.atleast_2d(np.asarray(given, dtype=float)))
    if out.ndim != 2 or out.shape[1] != size:
        raise InvalidShape(f"{name} must have {size} values per sample, got shape {np.shape(given)}", name)
    return out
