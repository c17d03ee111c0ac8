"""Arguments of Python functions as the options that set them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dynid.errors import Keyword

__all__ = ["option_words"]

# Arguments whose option has a parameter of another name, for all commands or for one.
_PARAMETERS = {
    "client": "cluster",
    "skip_bad": "skip_bad_partitions",
    "link_masses": "link_mass",
    "loop": "controller",
    "language": "to",
    "most": "stack",
    "centre": "center",
    "payload": "payload_mass",
    "reference": "reference_joints",
    "distances": "distance",
    "surfaces": "surface",
}
_BY_COMMAND = {
    "inspect": {"method": "grouping"},
    "excite": {"start": "start_posture", "noise": "torque_noise", "share": "limit_share"},
    "chirp": {
        "rate": "output_rate",
        "start": "start_posture",
        "noise": "position_noise",
        "acceleration": "limits",
    },
    "gains": {"positive": "negative"},
    "simulate": {"rate": "output_rate", "noise": "position_noise", "delay": "control_delay"},
    "live": {"noise": "channel_noise"},
    "friction": {"criterion": "selection"},
    "plan": {"candidates": "pool"},
    "compensate": {"noise": "noise_model", "method": "gp_method"},
}


def option_words(group: Any, command: str | None) -> Callable[[Keyword], str]:
    """How the command line names an argument: by the option of `command`, else by that of any command.

    Parameters
    ----------
    group : click.Group
        All commands.
    command : str or None
        Name of the command that runs.

    Returns
    -------
    callable
        "rate=100" becomes "--rate 100", "allow_infeasible=True" "--allow-infeasible", and "units={'t': 'ms'}"
        "--units t=ms".
        An argument that no option sets stays as it is.
    """
    own = _BY_COMMAND.get(command or "", {})

    def words(keyword: Keyword) -> str:
        wanted = own.get(keyword.name) or _PARAMETERS.get(keyword.name, keyword.name)
        names = next(_options(group, command, wanted), None) or next(_options(group, command, keyword.name), None)
        return str(keyword) if names is None else " ".join(_given(names, keyword))

    return words


def _options(group: Any, command: str | None, name: str) -> Iterator[list[str]]:
    """The option of a parameter and the one that switches it off, of the command that runs, then of all others."""
    commands = group.commands
    first = [commands[command]] if command in commands else []
    for one in [*first, *commands.values()]:
        if hasattr(one, "commands"):
            yield from _options(one, None, name)
            continue
        for parameter in one.params:
            if parameter.name == name and parameter.param_type_name == "option":
                yield [*parameter.opts[:1], *parameter.secondary_opts[:1]]


def _given(names: list[str], keyword: Keyword) -> Iterator[str]:
    """The option with its value; options of signals are repeated."""
    for value in keyword.values:
        if isinstance(value, dict):
            yield from (f"{names[0]} {signal}={one}" for signal, one in value.items())
        elif isinstance(value, bool):
            yield names[0] if value else names[-1]
        else:
            shown = "none" if value is None else f"{value:g}" if isinstance(value, float) else value
            yield f"{names[0]} {shown}"
    if not keyword.values:
        yield names[0]
