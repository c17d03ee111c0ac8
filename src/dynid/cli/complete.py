"""What a shell may complete: names that are known without loading what they stand for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

import typer

from dynid.errors import one_of
from dynid.export.simulators.registry import simulator_names
from dynid.robot.drives import FRICTION_TERMS

__all__ = [
    "CRITERIA",
    "FAMILIES",
    "FRICTION",
    "STUDIES",
    "criteria",
    "effects",
    "families",
    "friction",
    "joined",
    "link_masses",
    "method_lists",
    "methods",
    "methods_help",
    "robots",
    "simulators",
    "studies",
]

# Loading the registries takes a second, too long for a shell that waits for words; tests hold the two together.
STUDIES = (
    *("structure", "dynamics", "excitation", "stacking", "toolbox-2dof", "wam", "codegen"),
    *("iiwa-feasibility", "pc-didim"),
    *("actuators", "semi-parametric", "compensated-control", "coverage", "intervals", "regret", "refusals"),
    *("extrapolation", "verdicts", "geometry-faults", "flexible", "geometry", "human-regressor"),
    *("human-forceplate", "tx40", "kr300", "kr300-flexible", "servo-friction", "so101", "tx40-filters", "legs"),
    *("fleet", "fleet-real", "geometry-postures"),
    *("drives", "friction-robots"),
    *("robots", "between-runs", "halves", "bodies", "real-verdicts"),
    *("horizon", "residual-robots", "feasible-robots"),
)
FAMILIES = (
    *("fourier", "fourier-free", "fourier-quintic", "b-spline", "cubic", "quintic"),
    *("trapezoid", "double-s", "postures"),
)
CRITERIA = ("d", "a", "e", "cond", "hadamard", "frobenius", "sum-cond", "mass-static", "mass-dynamic", "sigma")
FRICTION = (*FRICTION_TERMS, "none")
EFFECTS = (
    *("load-friction", "quadratic-friction", "ripple", "counterbalance", "spring"),
    *("coupled-friction", "coupled-inertia"),
)
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


# Bodies in the text of a robot file: parsing the model takes longer than a shell waits.
_BODY = re.compile(r"""<(?:link|body)\b[^>]*?\bname\s*=\s*["']([^"']+)["']""")


def link_masses(ctx: typer.Context, incomplete: str) -> list[str]:
    """Links of ROBOT, or of the robot of dynid.toml, each with the sign before its mass."""
    with suppress(OSError, ValueError, AttributeError):  # no file, or one of another kind
        # Arguments have no names yet: the option that is completed has no value.
        text = _robot_text(next((word for word in ctx.args if word in robots(word)), None) or _project_robot())
        return [f"{name}=" for name in dict.fromkeys(_link_names(text)) if name.startswith(incomplete)]
    return []


def _project_robot() -> str:
    robot = tomllib.loads(Path("dynid.toml").read_text(encoding="utf-8")).get("robot", {})
    return str(robot.get("file", ""))


def _robot_text(name: str) -> str:
    path = Path(name)
    if path.suffix.lower() in ROBOT_FILES:
        return path.read_text(encoding="utf-8")
    return resources.files("dynid.robot.builtin").joinpath(f"{name}.toml").read_text(encoding="utf-8")


def _link_names(text: str) -> list[str]:
    if text.lstrip().startswith("<"):
        return _BODY.findall(text)
    rows = tomllib.loads(text).get("joint", [])
    return [str(row.get("link", f"link{number}")) for number, row in enumerate(rows, 1)]


def _words(known: Sequence[str]) -> Callable[[str], list[str]]:
    return lambda incomplete: [word for word in known if word.startswith(incomplete)]


def methods(incomplete: str) -> list[tuple[str, str]]:
    """Methods with what they do; those of other packages with the name of the package."""
    from dynid.identification.estimators.method import PLUGINS, described

    said = {name: str(values["sentence"]) for name, values in described().items()}
    said |= {name: f"Of package {package}." for name, package in PLUGINS.packages().items() if name not in said}
    return [(name, words) for name, words in said.items() if name.startswith(incomplete)]


def method_lists(incomplete: str) -> list[str]:
    """Methods separated by commas: the last one is completed, none comes twice."""
    from dynid.identification.estimators.method import method_names

    return joined(method_names(), ",")(incomplete)


def methods_help() -> str:
    """The methods by what they need, for --help."""
    from dynid.identification.estimators.method import PLUGINS, described

    records = described().values()
    chosen = [r for r in records if r.get("takes") == "recording"]
    plain = [r for r in records if "takes" not in r]
    filters = [r for r in records if r.get("takes") == "experiment" and not r.get("uses_controller")]
    kinds = {
        "": [r for r in plain if not r.get("needs_runs")],
        " from whole runs": [r for r in plain if r.get("needs_runs")],
        " without the controller": filters,
        " with --controller": [r for r in records if r.get("uses_controller")],
    }
    said = [f"{r['name']}: {r['sentence'][0].lower()}{r['sentence'][1:-1]}" for r in chosen]
    said += [f"{one_of(r['name'] for r in kind)}{words}" for words, kind in kinds.items()]
    others = [name for name in PLUGINS.packages() if name not in described()]
    said += [f"of other packages {one_of(others)}"] if others else []
    return f"{'; '.join(said)}. [auto]"


def joined(known: Sequence[str], by: str) -> Callable[[str], list[str]]:
    """Words that are given joined: the last one is completed, none comes twice."""

    def complete(incomplete: str) -> list[str]:
        before, mark, last = incomplete.rpartition(by)
        given = before.split(by)
        return [f"{before}{mark}{word}" for word in known if word.startswith(last) and word not in given]

    return complete


studies = _words(STUDIES)
simulators = _words(simulator_names())
families = _words(FAMILIES)
criteria = _words(CRITERIA)
effects = _words(EFFECTS)
friction = joined(FRICTION, "+")
