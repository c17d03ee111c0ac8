"""Estimators: each a function from an Observation, or from an Experiment it simulates, to a Solution."""

from collections.abc import Callable

from dynid.identification.estimators.closed_loop import didim, iv, pc_didim, pc_iv
from dynid.identification.estimators.feasible import feasible
from dynid.identification.estimators.gls import gls
from dynid.identification.estimators.irls import irls
from dynid.identification.estimators.kalman import ekf, ukf
from dynid.identification.estimators.maximum_likelihood import ml
from dynid.identification.estimators.ols import ols
from dynid.identification.estimators.output_error import clie, cloe
from dynid.identification.estimators.ridge import ridge
from dynid.identification.estimators.solution import Solution
from dynid.identification.estimators.tls import tls
from dynid.identification.estimators.wls import wls
from dynid.identification.observation import Observation

__all__ = ["CLOSED_LOOP", "ESTIMATORS", "UNCONTROLLED", "Solution"]

ESTIMATORS: dict[str, Callable[..., Solution]] = {
    "ols": ols,
    "wls": wls,
    "gls": gls,
    "irls": irls,
    "tls": tls,
    "ridge": ridge,
    "feasible": feasible,
}

CLOSED_LOOP: dict[str, Callable[..., tuple[Solution, Observation]]] = {
    "iv": iv,
    "didim": didim,
    "pc-iv": pc_iv,
    "pc-didim": pc_didim,
    "cloe": cloe,
    "clie": clie,
    "ml": ml,
    "ekf": ekf,
    "ukf": ukf,
}

# Those of an experiment that never run its controller.
UNCONTROLLED = ("ml", "ekf", "ukf")
