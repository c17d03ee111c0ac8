"""Semidefinite programs written for programs that read the SDPA sparse format, their solutions read back."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, DynidError, MissingFile, MissingPackage
from dynid.feasibility.semidefinite import Semidefinite

__all__ = ["PROGRAMS", "installed_programs", "read_solution", "run_program"]

Array = NDArray[np.float64]

# Program -> its command line.
PROGRAMS = {
    "csdp": ("csdp", "problem.dat-s", "solution"),
    "sdpa": ("sdpa", "-ds", "problem.dat-s", "-o", "solution", "-p", "settings"),
}
# Exit codes of a solution; CSDP ends with 3 where it is less accurate than was asked for, SDPA says so in its file.
_SOLVED = (0, 3)
_PHASES = ("pdOPT", "pdFEAS")
# Settings of SDPA, in its order: its own, but for accuracies of 1e-9 and results with all digits.
_SETTINGS = """200 maxIteration
1.0E-9 epsilonStar
1.0E2 lambdaStar
2.0 omegaStar
-1.0E5 lowerBound
1.0E5 upperBound
0.1 betaStar
0.3 betaBar
0.9 gammaStar
1.0E-9 epsilonDash
%+.17e xPrint
NOPRINT XPrint
NOPRINT YPrint
%+.17e infPrint
"""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def installed_programs() -> tuple[str, ...]:
    """Programs on this computer that read the format."""
    return tuple(name for name in PROGRAMS if shutil.which(name))


def run_program(problem: Semidefinite, name: str) -> Array:
    """The y that a program finds."""
    if shutil.which(name) is None:
        raise MissingPackage(f"the program '{name}' is not installed")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "problem.dat-s").write_text(problem.text(), encoding="ascii")
        Path(folder, "settings").write_text(_SETTINGS, encoding="ascii")
        ended = subprocess.run(PROGRAMS[name], cwd=folder, capture_output=True, check=False)
        solution = Path(folder, "solution")
        if ended.returncode not in _SOLVED or not solution.exists():
            raise DynidError(f"'{name}' found no solution and ended with code {ended.returncode}", code="not_converged")
        return read_solution(solution, len(problem.cost))


def read_solution(path: str | Path, count: int) -> Array:
    """The y (count,) of a file that CSDP (its first line) or SDPA (its xVec) has written."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise MissingFile(f"cannot read '{path}': {error.strerror}") from None
    phase = re.search(r"phase\.value\s*=\s*(\w+)", text)
    if phase is not None and phase[1] not in _PHASES:
        raise DynidError(f"{Path(path).name}: SDPA ended with '{phase[1]}'", code="not_converged")
    named = re.search(r"xVec\s*=\s*\{([^{}]*)\}", text)
    found = named[1] if named else text.partition("\n")[0]
    words = found.replace(",", " ").split()
    if len(words) != count or not all(re.fullmatch(_NUMBER, x) for x in words):
        raise DamagedFile(f"{Path(path).name}: not a solution of CSDP or SDPA with {count} unknowns")
    return np.array(words, dtype=float)
