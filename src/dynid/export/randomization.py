"""Draws of actuator parameters as files for domain randomization: ranges with correlations, or sampled models."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dynid.errors import MissingArgument, NotWritable, WrongFormat
from dynid.export.label import Label, passed
from dynid.export.parameters import to_toml
from dynid.export.simulators.registry import simulator_target
from dynid.export.simulators.write import SimulatorFile, write_actuators
from dynid.files import make_folder, write_text
from dynid.identification.parameter_draws import ParameterDraws
from dynid.quoting import one_line
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.saved import envelope

__all__ = ["write_ranges", "write_samples"]

_COLUMNS = ("name", "joint", "symbol", "unit", "mean", "std", "low", "high")


def write_ranges(
    draws: ParameterDraws,
    path: str | Path,
    *,
    level: float = 0.9,
    label: Label | None = None,
    untrusted: bool = False,
) -> None:
    """Write mean, standard deviation, range and correlation of drawn parameters.

    Parameters
    ----------
    draws : ParameterDraws
        The draws.
    path : str or Path
        File to write; its ending names the format. JSON and TOML hold a list of parameters and the correlation matrix;
        CSV one row per parameter, whose last columns are its correlations with all of them.
    level : float, default 0.9
        Share of the draws between the low and the high end of a range.
    label : Label, optional
        What the file says of the estimate that was drawn from: fields of JSON and TOML, a column of CSV.
    untrusted : bool, default False
        Write ranges of an estimate whose verdict is "do not use". They are refused otherwise.

    Raises
    ------
    DataError
        If the ending is not .json, .toml or .csv, the level is not between 0 and 1, or the verdict is "do not use".

    Examples
    --------
    >>> import tempfile, json, pathlib
    >>> import numpy as np
    >>> from dynid.identification import ParameterDraws
    >>> from dynid.export import write_ranges
    >>> values = np.random.default_rng(0).normal([0.01, 0.3], [0.001, 0.02], (500, 2))
    >>> draws = ParameterDraws(("Ia_hip", "fc_hip"), ("hip", "hip"), ("Ia", "fc"), ("kg m2", "N m"), values)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_ranges(draws, f"{folder}/ranges.json")
    ...     page = json.loads(pathlib.Path(folder, "ranges.json").read_text())
    >>> page["parameters"][0]["unit"], round(page["parameters"][0]["mean"], 3)
    ('kg m2', 0.01)
    """
    if label is not None:
        passed(label, untrusted)
    low, high = draws.quantiles(level)
    numbers = zip(draws.mean, draws.std, low, high, strict=True)
    words = zip(draws.names, draws.joints, draws.symbols, draws.units, strict=True)
    rows = [
        dict(zip(_COLUMNS, (*text, *map(float, values)), strict=True))
        for text, values in zip(words, numbers, strict=True)
    ]
    correlation = draws.correlation.tolist()
    form = Path(path).suffix.lower()
    if form == ".csv":
        text = _csv(rows, correlation, label)
    elif form in (".json", ".toml"):
        page = envelope("ranges") | {"draws": draws.count, "level": level, "correlation": correlation}
        page |= {} if label is None else label.to_dict()
        page["parameters"] = rows
        text = json.dumps(page, indent=2, ensure_ascii=False) + "\n" if form == ".json" else to_toml(page)
    else:
        raise WrongFormat(f"ranges are written as .json, .toml or .csv, not as '{Path(path).name}'")
    write_text(path, text)


def _csv(rows: list[dict[str, Any]], correlation: list[list[float]], label: Label | None) -> str:
    said = {} if label is None else {"label": ". ".join(map(one_line, label.lines()))}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_COLUMNS, *said, *(f"correlation {row['name']}" for row in rows)])
    for row, line in zip(rows, correlation, strict=True):
        writer.writerow([*row.values(), *said.values(), *line])
    return out.getvalue()


def write_samples(
    models: Iterable[tuple[Robot, ActuatorLaw]],
    folder: str | Path,
    simulator: str = "mujoco",
    *,
    step: float | None = None,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
    label: Label | None = None,
    untrusted: bool = False,
) -> list[SimulatorFile]:
    """Write sampled models, one file each: model_0001.xml, model_0002.xml and so on.

    Parameters
    ----------
    models : iterable of tuple of Robot and ActuatorLaw
        Robot and law of each sample, such as those of `ParameterDraws.models`.
    folder : str or Path
        Folder to write into; it is made where it does not exist.
    simulator : str, default "mujoco"
        Name of the simulator; see `list_simulators`.
    step : float, optional
        Physics step of the simulation (s), as for `write_actuators`.
    template : str or Path, optional
        Model file of the same robot, as for `write_actuators`.
    allow_infeasible : bool, default False
        Write parameters that are not physically consistent. They are refused otherwise.
    label : Label, optional
        What the files say of the estimate that was drawn from.
    untrusted : bool, default False
        Write models of an estimate whose verdict is "do not use". They are refused otherwise.

    Returns
    -------
    list of SimulatorFile

    Raises
    ------
    DataError
        If the simulator is unknown, there is no model, or the folder holds sampled models beyond those written.
    """
    ending = simulator_target(simulator).ending
    given = list(models)
    if not given:
        raise MissingArgument("there is no sampled model to write", "models")
    place = make_folder(folder)
    names = [f"model_{k:04d}{ending}" for k in range(1, len(given) + 1)]
    old = [x.name for x in place.iterdir() if re.fullmatch(r"model_\d{4,}\..*", x.name) and x.name not in names]
    if old:
        raise NotWritable(
            f"'{folder}' holds other sampled models, such as {min(old)}: remove them, or name another folder", "folder"
        )
    options: dict[str, Any] = {"step": step, "template": template, "allow_infeasible": allow_infeasible}
    options |= {"label": label, "untrusted": untrusted}
    return [
        write_actuators(robot, law, place / name, simulator, **options)
        for (robot, law), name in zip(given, names, strict=True)
    ]
