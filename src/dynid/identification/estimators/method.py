"""The record of a method: what it is called, what it needs, what it can do, and its function.

This file imports nothing that takes its time: a shell that completes a word, and --help, read from it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from dynid.base.records import Plugins
from dynid.errors import one_of

if TYPE_CHECKING:
    from dynid.identification.estimators.options import MethodOptions

__all__ = ["MODULES", "PLUGINS", "Method", "described", "method_names"]

# Modules with records, in the order in which methods are listed.
MODULES = (
    "dynid.identification.auto",
    "dynid.identification.estimators.least_squares",
    "dynid.identification.estimators.feasible",
    "dynid.identification.estimators.energy",
    "dynid.identification.estimators.closed_loop",
    "dynid.identification.estimators.maximum_likelihood",
    "dynid.identification.estimators.kalman",
)

Takes = Literal["observation", "experiment", "recording"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Method:
    """A method of estimation. Other packages add theirs by the entry-point group `dynid.methods`.

    Attributes
    ----------
    name : str
        The name by which it is chosen; that of its entry point as well.
    sentence : str
        What it does, in one sentence.
    options : type of MethodOptions
        Dataclass of its options, whose default values are valid.
    function : callable
        By `takes`: `function(observation, options)` returns a Solution; `function(experiment, options, progress)` a
        Solution and the Observation that it fits; `function(robot, recording, options, **settings)` both as well, with
        the settings of `identify` and `tempered`, which is False for white noise.
    takes : {"observation", "experiment", "recording"}, default "observation"
        What the function estimates from: the folded rows; the experiment, which it simulates or filters; or the
        recording, of which it chooses the drive terms itself.
    needs_runs : bool, default False
        Whether it needs the motion of whole runs, not their rows alone.
    reads_again : bool, default False
        Whether it reads the samples again, so that factors do not suffice: online, on a device, for folds of data sets.
    robust : bool, default False
        Whether outliers have less weight.
    robust_options : mapping of str to tuple of str
        Values of options with which it is robust and reads the samples again.
    has_prior : bool, default False
        Whether a prior decides what the motion does not show.
    consistent : bool, default False
        Whether its parameters are physically consistent.
    posterior : bool, default False
        Whether its covariance is that of a posterior with learned scales.
    uses_controller : bool, default False
        Whether it simulates the closed loop, which needs the controller; of those that take an experiment.
    feedback_free : bool, default False
        Whether it stays unbiased where feedback correlates the measured motion with the torque errors.
    fits_torques : bool, default True
        Whether its residuals are those of measured torques, which show how the noise is correlated over time.
    alternating : bool, default False
        Whether feedback makes its residuals alternate: standard deviations are then not below those of white noise.
    """

    name: str
    sentence: str
    options: type[MethodOptions]
    function: Callable[..., Any] = field(repr=False)
    takes: Takes = "observation"
    needs_runs: bool = False
    reads_again: bool = False
    robust: bool = False
    robust_options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_prior: bool = False
    consistent: bool = False
    posterior: bool = False
    uses_controller: bool = False
    feedback_free: bool = False
    fits_torques: bool = True
    alternating: bool = False

    def __post_init__(self) -> None:
        if self.takes not in get_args(Takes):
            raise ValueError(f"a method takes {one_of(get_args(Takes))}, not {self.takes!r}")
        if not is_dataclass(self.options):
            raise TypeError(f"the options of a method are a dataclass, got {self.options!r}")

    @property
    def simulates(self) -> bool:
        """Whether it simulates or filters an experiment."""
        return self.takes == "experiment"

    @property
    def option_names(self) -> tuple[str, ...]:
        """Names of its options."""
        return tuple(x.name for x in fields(self.options))

    def read_again_for(self, options: MethodOptions) -> str:
        """What needs the samples again with these options, in words; empty where factors suffice."""
        for option, values in self.robust_options.items():
            if getattr(options, option) in values:
                return f"a robust {option}"
        return f"method '{self.name}'" if self.reads_again else ""


PLUGINS = Plugins("dynid.methods", Method, "method")
# A record in the text of a file, as the formatter writes it.
_RECORD = re.compile(r"^[A-Z_]+ = (Method\(\n.*?^\))$", re.MULTILINE | re.DOTALL)


@cache
def described() -> Mapping[str, Mapping[str, Any]]:
    """The fields of dynid's own records that are plain values, by name: their files are read and not imported."""
    root, found = Path(__file__).parents[2], {}
    for module in MODULES:
        text = root.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8")
        for record in _RECORD.findall(text):
            call = ast.parse(record, mode="eval").body
            assert isinstance(call, ast.Call)
            plain = {x.arg: x.value for x in call.keywords if x.arg not in ("options", "function", "robust_options")}
            values = {name: ast.literal_eval(value) for name, value in plain.items() if name is not None}
            found[values["name"]] = values
    return found


def method_names() -> tuple[str, ...]:
    """Names of all methods, those of other packages last; no method is loaded."""
    return tuple(dict.fromkeys((*described(), *PLUGINS.packages())))
