"""Traces over HTTP: what a recording holds, and the windows of it that plots show. The guard stands before both."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from fastapi import FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from dynid.errors import DynidError, InvalidValue
from dynid.studio.traces import Window
from dynid.studio.traces_source import LoggedRun, TraceSource

__all__ = ["add_routes", "described", "packed"]

_HEADERS = {"Cache-Control": "no-store"}
# Joints in one request; no robot has more.
_MOST_JOINTS = 1000


def add_routes(app: FastAPI, source: TraceSource) -> None:
    """Serve `/traces/{name}/about` and `/traces/{name}/window`.

    Parameters
    ----------
    app : FastAPI
        The application, behind the guard.
    source : TraceSource
        Where the runs come from.
    """

    @app.get("/traces/{name}/about")
    def about(name: str, run: int = 0, predicted: bool = False) -> Response:
        def response() -> Response:
            logged = source.run(name, run)
            if predicted:
                source.prediction(name, run)
            return JSONResponse(described(logged, predicted), headers=_HEADERS)

        return _told(response)

    @app.get("/traces/{name}/window")
    def window(
        name: str, start: float, stop: float, columns: int, joints: str, run: int = 0, predicted: bool = False
    ) -> Response:
        def response() -> Response:
            content = packed(source, name, run, (start, stop, columns), joints, predicted)
            return Response(content, media_type="application/octet-stream", headers=_HEADERS)

        return _told(response)


def described(logged: LoggedRun, predicted: bool) -> dict[str, Any]:
    """What the plots of a run show, as plain data: axes with label and unit, joints, samples and duration in s."""
    return {
        "runs": list(logged.runs),
        "joints": list(logged.joints),
        "samples": len(logged.run),
        "duration": logged.duration,
        "axes": logged.axes(predicted),
    }


def packed(
    source: TraceSource, name: str, run: int, view: tuple[float, float, int], joints: str, predicted: bool
) -> bytes:
    """Windows of the signals of some joints in bytes.

    Parameters
    ----------
    source : TraceSource
        Where the run comes from.
    name : str
        Name of the file in the workspace.
    run : int
        Number of the run in it.
    view : tuple of (float, float, int)
        First and last time in s, and the number of pixel columns.
    joints : str
        Numbers of the joints, separated by commas.
    predicted : bool
        Whether the predicted torques and residuals are wanted too.

    Returns
    -------
    bytes
        The length of the header as a 4-byte integer; the header as JSON, filled up with blanks to a multiple of eight
        bytes; then, of every block of the header, its times, and the low and the high values of every column. All
        numbers are little-endian, those after the header 8-byte floats.

    Raises
    ------
    DataError
        If there is no such run or prediction, or the view cannot be shown.
    """
    logged = source.run(name, run)
    chosen = _numbers(joints, len(logged.joints))
    blocks: list[dict[str, Any]] = []
    arrays = []

    def add(found: Window, gap: float, columns: list[tuple[str, int]], picks: list[int]) -> None:
        shown = {"points": len(found.times), "whole": found.whole, "gap": gap if np.isfinite(gap) else None}
        blocks.append({**shown, "columns": columns})
        arrays.append(found.times)
        for k in picks:
            arrays.extend((found.low[:, k], found.high[:, k]))

    for signal, trace in logged.traces.items():
        add(trace.window(*view), trace.gap, [(signal, j) for j in chosen], chosen)
    if predicted:
        model = source.prediction(name, run)
        for joint, trace in zip(model.joints, model.traces, strict=True):
            if joint in chosen:
                add(trace.window(*view), trace.gap, [("predicted", joint), ("residual", joint)], [0, 1])
    header = json.dumps({"start": view[0], "stop": view[1], "blocks": blocks}, separators=(",", ":")).encode()
    header += b" " * (-(len(header) + 4) % 8)
    numbers = np.concatenate([np.zeros(0), *arrays]).astype("<f8").tobytes()
    return struct.pack("<I", len(header)) + header + numbers


def _numbers(text: str, count: int) -> list[int]:
    """Numbers of joints from text; those that no joint has are an error of the request."""
    parts = [x for x in text.split(",") if x]
    if len(parts) > _MOST_JOINTS or not all(x.isascii() and x.isdigit() and int(x) < count for x in parts):
        raise InvalidValue(f"joints are numbers below {count}, separated by commas", "joints")
    return sorted({int(x) for x in parts})


def _told(response: Callable[[], Response]) -> Response:
    """The response, or in a sentence why there is none."""
    try:
        return response()
    except DynidError as error:
        return PlainTextResponse(str(error), status_code=400)
