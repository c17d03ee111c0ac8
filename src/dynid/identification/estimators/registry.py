"""The methods by name: the records of dynid's own files and those of other packages."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from dynid.errors import ConflictingArguments, InvalidType, NotApplicable, UnknownName, did_you_mean, named, one_of
from dynid.identification.estimators.method import MODULES, PLUGINS, Method, method_names
from dynid.identification.estimators.options import MethodOptions, options_from

__all__ = [
    "check_factors_suffice",
    "find_method",
    "is_feedback_free",
    "is_posterior",
    "method_options",
    "methods",
    "own_methods",
]


@cache
def own_methods() -> dict[str, Method]:
    """The methods of dynid by name."""
    found: dict[str, Method] = {}
    for module in MODULES:
        for value in vars(import_module(module)).values():
            if isinstance(value, Method):
                found[value.name] = value
    return found


def methods() -> dict[str, Method]:
    """All methods by name: those of dynid, and those of other packages that can be loaded.

    Returns
    -------
    dict of str to Method
        A warning names each package whose method cannot be loaded.

    Examples
    --------
    >>> from dynid.identification import methods
    >>> [name for name, method in methods().items() if method.needs_runs]
    ['power', 'energy']
    """
    return own_methods() | PLUGINS.all(own_methods())


def find_method(name: str) -> Method:
    """The method of a name.

    Raises a DataError if there is none, and a DynidError if the package that adds it is broken.
    """
    found = own_methods().get(name) or PLUGINS.find(name)
    if found is None:
        known = method_names()
        raise UnknownName(f"{named('method')} '{name}' is unknown: use {', '.join(known)}{did_you_mean(name, known)}")
    return found


def is_posterior(name: str) -> bool:
    """Whether estimates of a method are those of a posterior; the method need not be installed."""
    return (found := methods().get(name)) is not None and found.posterior


def is_feedback_free(name: str) -> bool:
    """Whether feedback does not bias a method; the method need not be installed."""
    return (found := methods().get(name)) is not None and found.feedback_free


def check_factors_suffice(method: Method, options: MethodOptions, why: str = "which are not kept") -> None:
    """Raise a DataError if a method reads the samples again, and say why it cannot."""
    again = method.read_again_for(options)
    if method.needs_runs or again:
        needs = (
            f"method '{method.name}' needs the runs themselves"
            if method.needs_runs
            else f"{again} needs the samples again"
        )
        raise NotApplicable(f"{needs}, {why}; use {one_of(_from_factors())}", "method")


def _from_factors() -> list[str]:
    """Methods that need no more than factors, whatever their options."""
    return [
        m.name
        for m in methods().values()
        if m.takes == "observation" and not (m.needs_runs or m.reads_again or m.robust_options)
    ]


def method_options(method: str, options: MethodOptions | None = None, **keywords: Any) -> MethodOptions:
    """The options of a method, given as its dataclass or as keywords.

    Raises a DataError if the method or a keyword is unknown, if `options` are those of another method, if both are
    given, or if a value is invalid.
    """
    kind = find_method(method).options
    if options is None:
        return options_from(kind, method, keywords)
    if type(options) is not kind:
        raise InvalidType(f"method '{method}' takes {kind.__name__}, got {type(options).__name__}", "options")
    if keywords:
        raise ConflictingArguments(
            f"give either options or keywords, got both options and '{next(iter(keywords))}'", "options"
        )
    return options
