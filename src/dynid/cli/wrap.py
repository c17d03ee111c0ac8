"""Decorators that give commands their shared arguments and options, and hand them over as `inputs`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

from dynid.cli import options
from dynid.cli.app import app, remember_inputs
from dynid.cli.inputs import Inputs
from dynid.cli.option_names import option_words
from dynid.cli.resolve import Subject, resolve
from dynid.errors import Sentence

__all__ = ["with_estimate", "with_friction", "with_logs", "with_model", "with_new_project", "with_robot"]

_ARGUMENTS = {
    "robot": options.RobotArgument,
    "estimate": options.EstimateArgument,
    "either": options.ModelArgument,
    "friction": options.FrictionArgument,
}
# Parameters of commands that take log files; a first argument that is a log is added to them.
_LOG_ARGUMENTS = ("data", "loaded")
# Commands that print the notes of a robot themselves, and those of geometry, which need no drives.
_TELLING = ("inspect", "actuators", "chirp", "plan", "fit")


def with_robot(
    command: Callable[..., None] | None = None, *, modelling: Sequence[str] = tuple(options.MODELLING)
) -> Callable[..., Any]:
    """Give a command ROBOT, the options of how it is modelled or some of them, and --project; it gets `inputs`."""
    if command is None:
        return lambda it: _wrapped(it, "robot", logs=False, cleaning=(), modelling=modelling)
    return _wrapped(command, "robot", logs=False, cleaning=(), modelling=modelling)


def with_logs(
    command: Callable[..., None] | None = None, *, cleaning: Sequence[str] = tuple(options.CLEANING)
) -> Callable[..., Any]:
    """Give a command ROBOT, its modelling options, those of how logs are read and cleaned, and --project."""
    if command is None:
        return lambda it: _wrapped(it, "robot", logs=True, cleaning=cleaning)
    return _wrapped(command, "robot", logs=True, cleaning=cleaning)


def with_new_project(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ROBOT and the options of how it is modelled and how logs are read, without a project file."""
    return _wrapped(command, "robot", logs=True, cleaning=(), use_project=False)


def with_estimate(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ESTIMATE, which holds the robot and the log format, the reading options, and --project."""
    return _wrapped(command, "estimate", logs=True, cleaning=())


def with_friction(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command MODEL, a robot or a saved friction selection, and the options of `with_logs`."""
    return _wrapped(command, "friction", logs=True, cleaning=tuple(options.CLEANING))


def with_model(
    command: Callable[..., None] | None = None, *, logs: bool = False, cleaning: Sequence[str] = ()
) -> Callable[..., Any]:
    """Give a command MODEL, a robot or an estimate, the options of how a robot is modelled, and --project."""
    if command is None:
        return lambda it: _wrapped(it, "either", logs=logs, cleaning=cleaning)
    return _wrapped(command, "either", logs=logs, cleaning=cleaning)


def _wrapped(
    command: Callable[..., None],
    subject: Subject,
    *,
    logs: bool,
    cleaning: Sequence[str],
    use_project: bool = True,
    modelling: Sequence[str] = tuple(options.MODELLING),
) -> Callable[..., None]:
    """The command with the shared parameters in place of `inputs`."""
    wanted = signature(command, eval_str=True).parameters
    own = [p for p in wanted.values() if p.name != "inputs"]
    shared: dict[str, Any] = {} if subject == "estimate" else {name: options.MODELLING[name] for name in modelling}
    shared |= options.READING if logs else {}
    shared |= {name: options.CLEANING[name] for name in cleaning}
    clash = {p.name for p in own} & set(shared)
    assert not clash, f"{command.__name__} redefines {clash}"
    added = {"subject": _ARGUMENTS[subject], **shared}
    if use_project:
        added["project"] = options.ProjectOption
    parameters = [Parameter(n, Parameter.KEYWORD_ONLY, default=None, annotation=a) for n, a in added.items()]

    @wraps(command)
    def run(**given: Any) -> None:
        taken = dict.fromkeys(options.MODELLING) | {name: given.pop(name) for name in added}
        files = next((name for name in _LOG_ARGUMENTS if name in wanted), None)
        inputs, found = resolve(subject, taken, given.get(files or "") or [], logs=logs, files=files is not None)
        if files is not None:
            given[files] = found
        remember_inputs(*_files(inputs, found))
        if inputs.robot_file and command.__name__ not in _TELLING:
            for note in inputs.robot.notes:
                said = note.in_words(option_words(app.built, command.__name__)) if isinstance(note, Sentence) else note
                print(f"note: {said}", file=sys.stderr)
        command(inputs=inputs, **given)

    ordered = [parameters[0], *(p.replace(kind=Parameter.KEYWORD_ONLY) for p in own), *parameters[1:]]
    run.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in ordered}
    return run


def _files(inputs: Inputs, logs: Sequence[Any]) -> Iterator[str]:
    """Files that the command reads, whether the command line or the project file names them."""
    yield inputs.robot_file
    project = inputs.project
    if project is not None:
        yield str(project.path)
        logs = [*logs, *project.logs("identify"), *project.logs("validate")]
    for log in logs:
        yield from (str(x) for x in log.values()) if isinstance(log, dict) else (str(log),)
