"""What `dynid excite` knows from earlier recordings, and the motions that it designs one after another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.cli import values
from dynid.cli.app import check_outputs, write, wrote
from dynid.cli.inputs import Inputs, load_estimate
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.errors import Mismatch, NotApplicable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dynid.excitation.information import Information
    from dynid.excitation.stacking import ExcitationStack
    from dynid.identification.estimate import Estimate
    from dynid.robot.model import Robot

__all__ = ["Stop", "check_stacked", "design_stack", "earlier", "earlier_estimates", "with_drives_of"]


class Stop:
    """When no further motion is designed: the options of --stack."""

    def __init__(self, most: int | None, target: float | None, least_gain: float | None) -> None:
        if most is None and not (target is None and least_gain is None):
            option = "--target" if target is not None else "--least-gain"
            raise NotApplicable(f"{option} is for motions one after another: give --stack", option)
        self.most = most
        self.settings: dict[str, Any] = {"most": most, "target": target}
        if least_gain is not None:
            self.settings["least_gain"] = least_gain


def earlier_estimates(after: str | None) -> list[Estimate]:
    """The saved estimates among the files of --after."""
    return [load_estimate(name) for name in _names(after) if _is_estimate(name)]


def with_drives_of(robot: Robot, estimate: Estimate) -> Robot:
    """The robot with the drive terms of an estimate."""
    from dataclasses import replace

    if estimate.robot.coordinates != robot.coordinates:
        raise Mismatch(
            f"--after: the estimate is of the joints {', '.join(estimate.robot.coordinates)}, but robot "
            f"'{robot.name}' has {', '.join(robot.coordinates)}",
            "after",
        )
    return replace(robot, drives=estimate.robot.drives)


def earlier(
    inputs: Inputs,
    robot: Robot,
    after: str | None,
    estimates: Sequence[Estimate],
    noise: NDArray[np.float64] | None,
    rate: float,
) -> Information:
    """What the files of --after tell of the parameters of a robot; nothing without any."""
    from dynid.excitation.information import earlier_information
    from dynid.parameters.base import base_parameters

    logs = [name for name in _names(after) if not _is_estimate(name)]
    if not logs and (inputs.reading or inputs.cleaning):
        option = next(iter({**inputs.reading, **inputs.cleaning})).replace("_", "-")
        raise NotApplicable(f"--{option} is for recordings: name some in --after", option)
    recordings = [inputs.read(logs)] if logs else []
    base = base_parameters(robot, channels="torque" if robot.base == "fixed" else "wrench")
    known = None if logs or estimates else rate
    signals = inputs.signals() if logs else None
    with working("reading what is known already"):
        return earlier_information(base, [*recordings, *estimates], noise=noise, rate=known, signals=signals)


def _names(after: str | None) -> list[str]:
    return [] if after is None else values.names(after)


def _is_estimate(name: str) -> bool:
    return Path(name).suffix.lower() == ".json"


def check_stacked(stop: Stop, output: Path, figure: Path | None) -> None:
    """Refuse the files that are written before the work is done."""
    numbers = [None] if stop.most is None else list(range(1, stop.most + 1))
    check_outputs(*(_numbered(path, k) for path in (output, figure) if path is not None for k in numbers))


def _numbered(path: Path, number: int | None) -> Path:
    """motion.csv as motion-1.csv for the first motion of several."""
    return path if number is None else path.with_name(f"{path.stem}-{number}{path.suffix}")


def design_stack(
    robot: Robot,
    duration: float,
    stop: Stop,
    settings: dict[str, Any],
    files: tuple[Path, Path | None, float],
    as_json: bool,
) -> None:
    """Design motions one after another, write each into a file of its own, and say what each adds."""
    from dynid.excitation.files import write_excitation
    from dynid.excitation.stacking import stack_excitations

    output, figure, rate = files
    with working("designing motions") as work:
        stack = stack_excitations(robot, duration, **settings, **stop.settings, progress=work.report)
    for k, motion in enumerate(stack.motions, start=1):
        write_excitation(motion, _numbered(output, k), rate)
        wrote(_numbered(output, k))
        if figure is not None:
            from dynid.report.excitation import excitation_figure

            write(_numbered(figure, k), excitation_figure(motion))
    _show(stack, as_json)


def _show(stack: ExcitationStack, as_json: bool) -> None:
    if as_json:
        print(json.dumps(stack.to_dict(), indent=2))
    else:
        show(stack.summary())
