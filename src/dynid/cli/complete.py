"""What a shell may complete: names that are known without loading what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

__all__ = [
    "FAMILIES",
    "FRICTION",
    "METHODS",
    "STUDIES",
    "families",
    "friction",
    "joined",
    "methods",
    "robots",
    "studies",
]

# Loading the registries takes a second, too long for a shell that waits for words; tests hold the two together.
METHODS = (
    *("auto", "ols", "wls", "gls", "irls", "tls", "ridge", "feasible"),
    *("iv", "didim", "pc-iv", "pc-didim", "cloe", "clie", "ml", "ekf", "ukf"),
)
STUDIES = (
    *("structure", "dynamics", "excitation", "toolbox-2dof", "wam", "codegen", "iiwa-feasibility", "pc-didim"),
    *("actuators", "semi-parametric", "compensated-control", "coverage", "verdicts", "flexible", "human-regressor"),
    *("human-forceplate", "tx40", "kr300", "kr300-flexible", "servo-friction", "so101", "tx40-filters", "legs"),
    *("fleet", "fleet-real"),
    *("drives", "friction-robots"),
    *("robots", "halves", "real-verdicts"),
    *("horizon", "residual-robots", "feasible-robots"),
)
FAMILIES = (
    *("fourier", "fourier-free", "fourier-quintic", "b-spline", "cubic", "quintic"),
    *("trapezoid", "double-s", "postures"),
)
FRICTION = ("viscous", "viscous-asymmetric", "coulomb", "coulomb-asymmetric", "offset", "none")
ROBOT_FILES = (".urdf", ".xml", ".mjcf", ".sdf", ".usd", ".usda", ".usdc", ".usdz", ".toml")


def robots(incomplete: str) -> list[str]:
    """Built-in robots, and files that may hold one."""
    built_in = (entry.name for entry in resources.files("dynid.robot.builtin").iterdir())
    names = sorted(name.removesuffix(".toml") for name in built_in if name.endswith(".toml"))
    return [n for n in names if n.startswith(incomplete)] + _files(incomplete)


def _files(incomplete: str) -> list[str]:
    folder, slash, _ = incomplete.rpartition("/")
    try:
        found = sorted(p.name for p in Path(folder + slash).iterdir() if p.suffix.lower() in ROBOT_FILES)
    except OSError:
        return []
    return [path for name in found if (path := f"{folder}{slash}{name}").startswith(incomplete)]


def _words(known: Sequence[str]) -> Callable[[str], list[str]]:
    return lambda incomplete: [word for word in known if word.startswith(incomplete)]


def joined(known: Sequence[str], by: str) -> Callable[[str], list[str]]:
    """Words that are given joined: the last one is completed, none comes twice."""

    def complete(incomplete: str) -> list[str]:
        before, mark, last = incomplete.rpartition(by)
        given = before.split(by)
        return [f"{before}{mark}{word}" for word in known if word.startswith(last) and word not in given]

    return complete


methods = _words(METHODS)
studies = _words(STUDIES)
families = _words(FAMILIES)
friction = joined(FRICTION, "+")
