"""The next command for logs, by what they are good for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.cli.values import Source

if TYPE_CHECKING:
    from dynid.assessment.data.route import Route
    from dynid.cli.inputs import Inputs
    from dynid.robot.model import Robot

__all__ = ["actuator_law", "next_command", "words_of"]


def next_command(found: Route, inputs: Inputs, sources: Sequence[Source], *, in_project: bool) -> str:
    """The command that identifies what the logs are good for.

    Parameters
    ----------
    found : Route
        What they are good for.
    inputs : Inputs
        The robot.
    sources : sequence of str or dict
        The logs, in the order in which they were judged.
    in_project : bool
        Whether the command finds robot and logs in dynid.toml.
    """
    named = [] if in_project else [inputs.robot_file]
    logs = [words_of(x) for x in sources]
    given = named if in_project else named + logs
    if found.goal == "payload":
        loaded = [x for i, x in enumerate(logs) if i in found.loaded]
        empty = [word for i, x in enumerate(logs) if i not in found.loaded for word in ("--without", x)]
        words = ["payload", *named, *loaded, *empty, "--link", _last_link(inputs.robot)]
    elif found.goal == "actuators":
        words = ["actuators", *given, *([] if in_project else ["--law", actuator_law(inputs)])]
    elif found.goal == "legs":
        words = ["legs", *given, "--feet", ",".join(found.feet) or "FRAMES"]
    elif found.goal == "record":
        words = ["excite", *named, "-o", "motion.csv"]
    elif found.goal == "gains":
        words = ["gains", *named, *logs[:1], "LOADED", "--payload-mass", "KG", "--link", _last_link(inputs.robot)]
    else:
        words = ["flexible" if found.goal == "flexible" else "identify", *given]
    return shlex.join(["dynid", *words])


def actuator_law(inputs: Inputs) -> str:
    """The law of the actuators as far as the robot file tells: "file" for its position actuators, else "pd"."""
    from dynid.actuators.law_file import law_of_file
    from dynid.errors import DataError

    try:
        law_of_file(inputs.robot_file, inputs.robot.coordinates)
    except DataError:
        return "pd"
    return "file"


def words_of(source: Source) -> str:
    """A log as it is written on the command line."""
    return source if isinstance(source, str) else ",".join(f"{s}={Path(p).as_posix()}" for s, p in source.items())


def _last_link(robot: Robot) -> str:
    """The link that a payload is usually fixed to."""
    return robot.links[robot.parameter_links[-1]].name
