"""Estimators: each a function from an Observation to a Solution, one a file."""

from collections.abc import Callable

from dynid.identify.estimators.feasible import feasible
from dynid.identify.estimators.gls import gls
from dynid.identify.estimators.irls import irls
from dynid.identify.estimators.ols import ols
from dynid.identify.estimators.ridge import ridge
from dynid.identify.estimators.solution import Solution
from dynid.identify.estimators.tls import tls
from dynid.identify.estimators.wls import wls

__all__ = ["ESTIMATORS", "Solution"]

ESTIMATORS: dict[str, Callable[..., Solution]] = {
    "ols": ols,
    "wls": wls,
    "gls": gls,
    "irls": irls,
    "tls": tls,
    "ridge": ridge,
    "feasible": feasible,
}
