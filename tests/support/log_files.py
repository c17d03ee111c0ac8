"""Small logs for the tests: a motion whose values are all different, and the errors of unusable files."""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot, Run
from dynid.robot import Joint, Link

Array = NDArray[np.float64]


def robot(*names: str, kinds: str = "") -> Robot:
    """A chain of joints with these names, "r" or "p" each."""
    words = {"r": "revolute", "p": "prismatic"}
    joints = tuple(
        Joint(name, words[(kinds or "r" * len(names))[k]], k, np.eye(4), np.array([0.0, 0.0, 1.0]))
        for k, name in enumerate(names)
    )
    body = dynid.inertia.inertia_from_com(1.0, [0.1, 0, 0], 0.01 * np.eye(3))
    return Robot("test", tuple(Link(f"link{k}", body) for k in range(len(names) + 1)), joints)


def motion(samples: int = 60, joints: int = 3, rate: float = 100.0, start: float = 0.0) -> Run:
    """Sines of another frequency for every joint, v their derivative, torques that identify joint and sample."""
    t = start + np.arange(samples) / rate
    w = 1.0 + np.arange(joints)
    q = 0.5 * np.sin((t[:, None] - start) * w) + w
    v = 0.5 * w * np.cos((t[:, None] - start) * w)
    return Run(t, q, v=v, torque=10.0 * w + 1e-3 * np.arange(samples)[:, None])


def table(run: Run, *signals: str) -> Array:
    """Columns t, then the signals one after the other."""
    return np.column_stack([run.t, *(getattr(run, s) for s in signals or ("q", "v", "torque"))])


def names(*stems: str, joints: int = 3, first: int = 1) -> list[str]:
    """t, then stem with a number for every joint."""
    return ["t", *(f"{stem}{k + first}" for stem in stems for k in range(joints))]


def text(rows: Array, header: list[str] | None = None, separator: str = ",") -> str:
    """A text table of numbers that read back exactly."""
    lines = [separator.join(header)] if header else []
    return "\n".join(lines + [separator.join(f"{x:.17g}" for x in row) for row in rows]) + "\n"


def write(path: Path, content: str | bytes) -> Path:
    """A file with this content, compressed according to its ending."""
    raw = content.encode() if isinstance(content, str) else content
    packers: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}
    path.write_bytes(packers.get(path.suffix, bytes)(raw))
    return path


def same(ours: Run, theirs: Run, *signals: str) -> bool:
    """Whether two runs hold exactly the same numbers."""
    return all(np.array_equal(getattr(ours, s), getattr(theirs, s)) for s in ("t", *(signals or ("q", "v", "torque"))))


@contextmanager
def refused(*parts: str) -> Iterator[None]:
    """A one-line DynidError that holds all these parts."""
    with pytest.raises(dynid.DynidError) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert re.search(part, message) or part in message, f"'{part}' is not in: {message}"
