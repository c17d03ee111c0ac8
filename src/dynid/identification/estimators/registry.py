"""The methods by name: their functions and the dataclasses of their options."""

from collections.abc import Callable
from typing import Any

from dynid.errors import ConflictingArguments, InvalidType, NotApplicable, UnknownName, did_you_mean, named
from dynid.identification.auto import AutoOptions
from dynid.identification.estimators.closed_loop import (
    ClieOptions,
    CloeOptions,
    DidimOptions,
    IvOptions,
    PcDidimOptions,
    PcIvOptions,
    clie,
    cloe,
    didim,
    iv,
    pc_didim,
    pc_iv,
)
from dynid.identification.estimators.energy import EnergyOptions, PowerOptions, energy, power
from dynid.identification.estimators.feasible import FeasibleOptions, feasible
from dynid.identification.estimators.kalman import EkfOptions, UkfOptions, ekf, ukf
from dynid.identification.estimators.least_squares import (
    LOSSES,
    GlsOptions,
    IrlsOptions,
    OlsOptions,
    RidgeOptions,
    TlsOptions,
    WlsOptions,
    gls,
    irls,
    ols,
    ridge,
    tls,
    wls,
)
from dynid.identification.estimators.maximum_likelihood import MlOptions, ml
from dynid.identification.estimators.options import MethodOptions, options_from
from dynid.identification.estimators.solution import Solution
from dynid.identification.observation import Observation

__all__ = [
    "BALANCES",
    "CLOSED_LOOP",
    "ESTIMATORS",
    "OPTIONS",
    "TORQUE_FITS",
    "UNCONTROLLED",
    "Solution",
    "check_factors_suffice",
    "check_method",
    "method_options",
]

# Methods that fit an observation.
ESTIMATORS: dict[str, Callable[..., Solution]] = {
    "ols": ols,
    "wls": wls,
    "gls": gls,
    "irls": irls,
    "tls": tls,
    "ridge": ridge,
    "feasible": feasible,
    "power": power,
    "energy": energy,
}

# Methods that need the experiment itself.
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

# Methods of an observation that fit the energy balance of its runs instead of its rows.
BALANCES = ("power", "energy")

# Methods of an experiment that fit measured torques, whose residuals show the noise.
TORQUE_FITS = ("iv", "didim", "pc-iv", "pc-didim")

# Methods of an experiment that do not use its controller.
UNCONTROLLED = ("ml", "ekf", "ukf")

OPTIONS: dict[str, type[MethodOptions]] = {
    "auto": AutoOptions,
    "ols": OlsOptions,
    "wls": WlsOptions,
    "gls": GlsOptions,
    "irls": IrlsOptions,
    "tls": TlsOptions,
    "ridge": RidgeOptions,
    "feasible": FeasibleOptions,
    "power": PowerOptions,
    "energy": EnergyOptions,
    "iv": IvOptions,
    "didim": DidimOptions,
    "pc-iv": PcIvOptions,
    "pc-didim": PcDidimOptions,
    "cloe": CloeOptions,
    "clie": ClieOptions,
    "ml": MlOptions,
    "ekf": EkfOptions,
    "ukf": UkfOptions,
}


def check_method(method: str) -> None:
    """Raise a DataError if no method has this name."""
    if method not in OPTIONS:
        raise UnknownName(
            f"{named('method')} '{method}' is unknown: use {', '.join(OPTIONS)}{did_you_mean(method, OPTIONS)}"
        )


def check_factors_suffice(method: str, options: MethodOptions, why: str = "which are not kept") -> None:
    """Raise a DataError if a method reads the samples again, and say why it cannot."""
    if method in BALANCES:
        raise NotApplicable(f"method '{method}' needs the runs themselves, {why}; use ols, wls, tls or ridge", "method")
    robust = isinstance(options, FeasibleOptions) and options.objective in LOSSES
    if method in ("irls", "gls") or robust:
        what = "a robust objective" if robust else f"method '{method}'"
        raise NotApplicable(f"{what} needs the samples again, {why}; use ols, wls, tls or ridge")


def method_options(method: str, options: MethodOptions | None = None, **keywords: Any) -> MethodOptions:
    """The options of a method, given as its dataclass or as keywords.

    Raises a DataError if the method or a keyword is unknown, if `options` are those of another method, if both are
    given, or if a value is invalid.
    """
    check_method(method)
    kind = OPTIONS[method]
    if options is None:
        return options_from(kind, method, keywords)
    if type(options) is not kind:
        raise InvalidType(f"method '{method}' takes {kind.__name__}, got {type(options).__name__}", "options")
    if keywords:
        raise ConflictingArguments(
            f"give either options or keywords, got both options and '{next(iter(keywords))}'", "options"
        )
    return options
