"""Functions that methods of results call by name: drawings, summaries, and what is computed from a result.

A result holds fields and imports none of the functions that take it. A method such as `Estimate.plot` looks its
function up here by the type of the result, when it is called. `tests/test_results.py` checks every entry.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["ATTACHED", "attached"]

# Functions by "module:class" of the result and name of the function; modules are inside of the package `dynid`.
ATTACHED: dict[str, dict[str, str]] = {
    "identification.estimate:Estimate": {
        "parameter_classes": "identification.known:parameter_classes",
        "draws": "identification.covariance:draw_parameters",
        "predict": "identification.domain:predict",
        "validate": "identification.validation:validate",
        "summary": "identification.summary:estimate_text",
        "plot": "identification.summary:draw_estimate",
    },
    "identification.validation_errors:Validation": {
        "summary": "identification.summary:validation_text",
        "plot": "identification.summary:draw_validation",
    },
    "flexible.estimate:FlexibleEstimate": {"validate": "flexible.validation:validate_flexible"},
    "actuators.estimate:ActuatorEstimate": {"write_toml": "actuators.toml_file:write_toml"},
    "geometry.estimate:GeometryEstimate": {"summary": "geometry.summary:estimate_text"},
    "simulation.simulation:Simulation": {"plot": "simulation.drawing:draw_simulation"},
    "assessment.finding:Finding": {"plot": "assessment.drawing:draw_finding"},
    "assessment.model.horizon:SimulationError": {"plot": "assessment.drawing:draw_simulation_error"},
    "assessment.model.line:LineScan": {"plot": "assessment.drawing:draw_line_scan"},
    "excitation.excitation:Excitation": {
        "plan": "excitation.planning:plan",
        "summary": "excitation.summary:excitation_text",
        "plot": "excitation.drawing:draw_excitation",
        "to_csv": "excitation.files:write_csv",
        "to_joint_trajectory": "excitation.files:write_joint_trajectory",
        "to_toml": "excitation.files:write_toml",
        "from_toml": "excitation.files:read_toml",
    },
    "excitation.plan:Plan": {"summary": "excitation.summary:plan_text"},
    "excitation.stacking:ExcitationStack": {"summary": "excitation.summary:stack_text"},
    "excitation.live:LiveScore": {"table": "excitation.live_colors:score_table"},
    "residual.residual:Residual": {
        "predictor": "residual.flattened:compiled_residual",
        "evaluate": "residual.evaluation:compare",
        "updated": "residual.streaming:updated",
        "save": "residual.files:save_residual",
        "load": "residual.files:load_residual",
        "plot": "residual.drawing:draw_residual",
    },
    "friction.selection:FrictionSelection": {
        "validate": "friction.validation:validate_friction",
        "plot": "friction.drawing:draw_friction",
    },
    "friction.result:FrictionFit": {
        "apply": "friction.apply:with_friction",
        "plot": "friction.drawing:draw_friction",
    },
}


def attached(owner: object, name: str) -> Callable[..., Any]:
    """The function of this name for a result, or for its class."""
    kind = owner if isinstance(owner, type) else type(owner)
    for one in kind.__mro__:
        place = f"{one.__module__.removeprefix('dynid.')}:{one.__qualname__}"
        if name in ATTACHED.get(place, {}):
            return _function(ATTACHED[place][name])
    raise LookupError(f"no function '{name}' is attached to {kind.__qualname__}")


@cache
def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"dynid.{module}"), name)
    return found
