"""What column names say: words for signals, numbers and names of joints, units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

__all__ = ["Group", "groups", "is_time", "mentioned", "named_unit", "tokens"]

_WORDS = {
    "q": {"q", "pos", "position", "positions", "angle", "angles", "ang", "theta"},
    "v": {"v", "qd", "dq", "qdot", "vel", "velocity", "velocities", "speed", "speeds", "omega"},
    "a": {"a", "qdd", "ddq", "qddot", "acc", "accel", "acceleration", "accelerations"},
    "torque": {"tau", "torque", "torques", "effort", "efforts", "eff"},
    "current": {"i", "cur", "curr", "current", "currents"},
    "reference": {"reference", "qref"},
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TIME = {"t", "time", "times", "timestamp", "timestamps", "stamp", "sec", "seconds"}
# Words that change nothing about what a column is.
_NEUTRAL = _words("joint joints jnt j axis actual act measured measurement meas msr field state states feedback robot")
# Words that make it another quantity: planned, modelled, cleaned, a bound or a state.
_OTHER = _words(
    "ext external cmd command commanded des desired target ref goal setpoint con control fric friction "
    "grav gravity model computed cmptd calc est estimated filt filtered limit limits max min err error "
    "temp temperature plan planned enable enabled mode status flag valid id scaling offset bias"
)
_UNITS = _words("rad deg degs degree degrees s sec nm n m mm a ma amp amps ms us ns rpm rads")
_ANGLES_OFF = {"deg": "deg", "degs": "deg", "degree": "deg", "degrees": "deg", "rpm": "rpm", "mm": "mm"}
_TIMES_OFF = dict.fromkeys(("ms", "msec", "millis"), "ms") | dict.fromkeys(("us", "usec", "micros"), "us")
_TIMES_OFF |= dict.fromkeys(("ns", "nsec", "nanos"), "ns")


@cache
def tokens(name: str) -> tuple[str, ...]:
    """Words and numbers of a name in small letters: TorqueSm1 and torque_sm[1] give torque, sm, 1."""
    return tuple(x.lower() for x in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


def _bare(words: Sequence[str]) -> str:
    """The words without units and neutral ones, in one piece."""
    out = ""
    for word in words:
        if word not in _NEUTRAL and not (out and word in _UNITS):
            out += word
    return out


def is_time(name: str) -> bool:
    """Whether a column is named as a clock is."""
    return _bare(tokens(name)) in _TIME


def named_unit(signal: str, name: str) -> str | None:
    """A unit other than SI that the name of a column tells, for times, positions, velocities and accelerations."""
    off = {"t": _TIMES_OFF, "q": _ANGLES_OFF, "v": _ANGLES_OFF, "a": _ANGLES_OFF, "reference": _ANGLES_OFF}
    table = off.get(signal, {})
    found = next((table[w] for w in tokens(name)[1:] if w in table), None)
    if found in ("deg", "mm") and signal in ("v", "a"):
        found += {"v": "/s", "a": "/s2"}[signal]
    return found


def _signal(words: Sequence[str]) -> str | None:
    """The signal that the words of a name tell, None where they tell none or several."""
    bare = _bare(words)
    for signal, known in _WORDS.items():
        if bare in known:
            return signal
    if _OTHER.intersection(words):
        return None
    found = {signal for signal, known in _WORDS.items() if known.intersection(words)}
    return found.pop() if len(found) == 1 else None


@dataclass
class Group:
    """Columns that differ only in the joint: by its name, by a number, or a single column (joint None)."""

    words: tuple[str, ...]
    columns: dict[str | int | None, str] = field(default_factory=dict)
    doubles: list[str] = field(default_factory=list)  # columns of one joint

    @property
    def signal(self) -> str | None:
        return _signal(self.words)

    @property
    def numbered(self) -> bool:
        return all(isinstance(key, int) for key in self.columns)

    def __str__(self) -> str:
        names = list(self.columns.values())
        return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"


def groups(names: Iterable[str], labels: Sequence[str] = (), bare: bool = False) -> list[Group]:
    """Columns put together by what they hold.

    A column belongs to the joint among `labels` whose name it contains, else to the last number in its name. Names
    that hold a joint's name and no other word count only with `bare`: q1 of a robot with a joint q1 is no joint name.
    """
    known = {label: tokens(label) for label in labels}
    out: dict[tuple[type, tuple[str, ...]], Group] = {}
    for name in names:
        if is_time(name) or name == "run":
            continue
        words = tokens(name)
        key: str | int | None
        key, rest = _label(words, known)
        if key is None or not (bare or rest):
            places = [k for k, word in enumerate(words) if word.isdigit()]
            key = int(words[places[-1]]) if places else None
            rest = words[: places[-1]] + words[places[-1] + 1 :] if places else words
        group = out.setdefault((type(key), rest), Group(rest))
        if key in group.columns:
            group.doubles += [group.columns[key], name]
        group.columns[key] = name
    return list(out.values())


def mentioned(names: Iterable[str], labels: Sequence[str]) -> bool:
    """Whether one of the joints or motors `labels` stands in one of the names."""
    known = {label: tokens(label) for label in labels}
    return any(_label(tokens(name), known)[0] is not None for name in names)


def _label(words: tuple[str, ...], known: dict[str, tuple[str, ...]]) -> tuple[str | None, tuple[str, ...]]:
    """The joint whose name stands in these words, the longest one, and the words without it."""
    best: tuple[str | None, tuple[str, ...]] = None, words
    size = 0
    for label, parts in known.items():
        for k in range(len(words) - len(parts) + 1):
            if len(parts) > size and words[k : k + len(parts)] == parts:
                best, size = (label, words[:k] + words[k + len(parts) :]), len(parts)
    return best
