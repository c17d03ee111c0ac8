"""Column names: words for signals, names and numbers of joints, units."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from dynid.errors import MissingArgument, keyword

__all__ = ["Group", "groups", "is_time", "joint_first", "mentioned", "named_unit", "tokens"]

_WORDS = {
    "q": {"q", "pos", "position", "positions", "angle", "angles", "ang", "theta"},
    "v": {"v", "qd", "dq", "qdot", "vel", "velocity", "velocities", "speed", "speeds", "omega"},
    "a": {"a", "qdd", "ddq", "qddot", "acc", "accel", "acceleration", "accelerations"},
    "torque": {"tau", "torque", "torques", "trq", "effort", "efforts", "eff", "moment", "moments"},
    "current": {"i", "cur", "curr", "current", "currents"},
    "reference": {"reference", "qref"},
}
_SIGNAL_WORDS = frozenset().union(*_WORDS.values())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TIME = {"t", "time", "times", "timestamp", "timestamps", "stamp", "sec", "seconds"}
_JOINT = _words("joint jnt")
# Words that do not change the quantity.
_NEUTRAL = _words("joint joints jnt j axis actual act measured measurement meas msr field state states feedback robot")
# Words that make it another quantity: planned, modeled or filtered values, limits, states.
_OTHER = _words(
    "ext external cmd command commanded des desired target ref goal setpoint con control fric friction "
    "grav gravity model computed cmptd calc est estimated filt filtered limit limits max min err error "
    "temp temperature plan planned enable enabled mode status flag valid id scaling offset bias"
)
# Words for what the controller is told; alone or with a word for positions they name the reference.
_COMMAND = _words("cmd command commanded des desired target ref reference goal setpoint")
# Words that say on which side of an elastic gear a position is measured.
_LINK_SIDE = _words("link secondary")
_UNITS = _words("rad deg degs degree degrees s sec nm n m mm a ma amp amps ms us ns rpm rads")
_ANGLES_OFF = {"deg": "deg", "degs": "deg", "degree": "deg", "degrees": "deg", "rpm": "rpm", "mm": "mm"}
_TIMES_OFF = dict.fromkeys(("ms", "msec", "millis"), "ms") | dict.fromkeys(("us", "usec", "micros"), "us")
_TIMES_OFF |= dict.fromkeys(("ns", "nsec", "nanos"), "ns")


@cache
def tokens(name: str) -> tuple[str, ...]:
    """Words and numbers of a name in lower case: TorqueSm1 and torque_sm[1] give torque, sm, 1."""
    return tuple(x.lower() for x in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


def _bare(words: Sequence[str]) -> str:
    """The words without units and neutral ones, in one piece."""
    out = ""
    for word in words:
        if word not in _NEUTRAL and not (out and word in _UNITS):
            out += word
    return out


def is_time(name: str) -> bool:
    """Whether the name of a column is that of a clock."""
    return _bare(tokens(name)) in _TIME


def named_unit(signal: str, name: str) -> str | None:
    """A unit other than SI in the name of a column of times, positions, velocities or accelerations."""
    off = {"t": _TIMES_OFF, "q": _ANGLES_OFF, "v": _ANGLES_OFF, "a": _ANGLES_OFF, "reference": _ANGLES_OFF}
    off["link_q"] = _ANGLES_OFF
    table = off.get(signal, {})
    found = next((table[w] for w in tokens(name)[1:] if w in table), None)
    if found in ("deg", "mm") and signal in ("v", "a"):
        found += {"v": "/s", "a": "/s2"}[signal]
    return found


@cache
def _signal(words: tuple[str, ...]) -> str | None:
    """The signal that the words name, None where they name none or several."""
    bare = _bare(words)
    for signal, known in _WORDS.items():
        if bare in known:
            return signal
    if _OTHER.intersection(words):
        said = [w for k, w in enumerate(words) if w not in _NEUTRAL and not (k and w in _UNITS)]
        commanded = bool(_COMMAND.intersection(said)) and _COMMAND.union(_WORDS["q"]).issuperset(said)
        return "reference" if commanded else None
    # A letter beside a word is not the signal: a1_pos is the position of axis A1, q_vel the velocity of q.
    long = [w for w in words if len(w) > 1]
    found = {signal for signal, known in _WORDS.items() if known.intersection(long)}
    found = found or {signal for signal, known in _WORDS.items() if known.intersection(words)}
    if found == {"torque"} and words[-1] == "d":  # tau_d is the desired torque; a torque has no derivative in a log
        return None
    if found == {"q"} and _LINK_SIDE.intersection(words):
        return "link_q"
    return found.pop() if len(found) == 1 else None


@dataclass
class Group:
    """Columns that differ only in the joint: by its name, by a number, or a single column (joint None)."""

    words: tuple[str, ...]
    columns: dict[str | int | None, str] = field(default_factory=dict)
    doubles: list[str] = field(default_factory=list)  # columns of one joint

    @property
    def signal(self) -> str | None:
        """The signal of the columns, None where their names do not decide."""
        return _signal(self.words)

    @property
    def plain(self) -> bool:
        """Whether the names say what the signal is in the words for positions, velocities and the like."""
        return bool(_SIGNAL_WORDS.intersection(self.words))

    @property
    def numbered(self) -> bool:
        """Whether the joints are given by numbers."""
        return all(isinstance(key, int) for key in self.columns)

    def __str__(self) -> str:
        names = list(self.columns.values())
        return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"


@dataclass(frozen=True)
class _Reading:
    """One reading of a column name: the joint, the place of its name (first word, word after), the other words."""

    joint: str
    start: int
    stop: int
    rest: tuple[str, ...]

    @property
    def signal(self) -> str | None:
        return _signal(self.rest)

    @property
    def rank(self) -> int:
        """2 where the other words name a signal and nothing else, 1 where they name one among others, else 0."""
        return 2 if not self.rest or _bare(self.rest) in _SIGNAL_WORDS else int(self.signal is not None)

    @property
    def joint_first(self) -> bool:
        """Whether the joint stands before the signal."""
        return self.start <= next((k for k, word in enumerate(self.rest) if word in _SIGNAL_WORDS), 0)

    def inside(self, other: _Reading) -> bool:
        """Whether the other joint's name contains this one."""
        longer = other.stop - other.start > self.stop - self.start
        return longer and other.start <= self.start and self.stop <= other.stop


def groups(
    names: Iterable[str],
    joints: Sequence[str] = (),
    *,
    bare: bool = False,
    clock: str | None = None,
    first: bool | None = None,
) -> list[Group]:
    """Columns grouped by their quantity.

    A column belongs to the joint whose name it contains, otherwise to the last number in its name.

    Parameters
    ----------
    names : iterable of str
        Names of the columns.
    joints : sequence of str
        Names of the joints or motors.
    bare : bool
        Whether a name that consists of the joint's name alone counts. It does not in a file of several signals: q1 of
        a robot with a joint q1 is a position.
    clock : str, optional
        Column of the clock, which is left out.
    first : bool, optional
        Whether the joint stands before the signal in names that can be read in two forms, see `joint_first`.

    Returns
    -------
    list of Group

    Raises
    ------
    DataError
        If a name can be read in two forms and `first` is None.
    """
    known = _joint_words(joints)
    out: dict[tuple[type, tuple[str, ...]], Group] = {}
    for name in names:
        words = tokens(name)
        if name in (clock, "run") or (is_time(name) and not (bare and any(words in forms for forms in known.values()))):
            continue
        key: str | int | None
        readings = _readings(words, known, bare)
        if len(readings) > 1:
            readings = [r for r in readings if r.joint_first is first] or readings
        if len(readings) > 1:
            options = " or ".join(f"{r.signal} of joint '{r.joint}'" for r in readings)
            raise MissingArgument(
                f"column '{name}' may be {options}: say which with {keyword('columns')}, for all signals"
            )
        if readings:
            key, rest = readings[0].joint, readings[0].rest
        else:
            places = [k for k, word in enumerate(words) if word.isdigit()]
            key = int(words[places[-1]]) if places else None
            rest = words[: places[-1]] + words[places[-1] + 1 :] if places else words
        group = out.setdefault((type(key), rest), Group(rest))
        if key in group.columns:
            group.doubles += [group.columns[key], name]
        group.columns[key] = name
    return list(out.values())


def joint_first(names: Iterable[str], joints: Sequence[str]) -> bool | None:
    """Whether a log writes the joint before the signal (x_tau) or after it (tau_x); None where no name decides.

    Only names with one reading decide. It matters for joints whose names are words for signals: q_v is the position of
    joint v or the velocity of joint q.
    """
    known = _joint_words(joints)
    votes = [0, 0]
    for name in names:
        readings = _readings(tokens(name), known)
        if len(readings) == 1 and readings[0].signal is not None and not _symmetric(readings[0], known):
            votes[readings[0].joint_first] += 1
    return None if votes[0] == votes[1] else votes[1] > votes[0]


def mentioned(names: Iterable[str], labels: Sequence[str]) -> bool:
    """Whether one of the names contains one of the joints or motors `labels`."""
    known = _joint_words(labels)
    return any(_readings(tokens(name), known, bare=True) for name in names)


_Known = dict[str, tuple[tuple[str, ...], ...]]


def _joint_words(joints: Sequence[str]) -> _Known:
    """Words of every joint's name, also without the word joint where the others identify it: a log may leave it out.

    A single letter or a word for a signal would be found where no joint is meant.
    """
    words: _Known = {joint: (tokens(joint),) for joint in joints}
    short = {joint: tuple(x for x in w[0] if x not in _JOINT) for joint, w in words.items()}
    counts = Counter(short.values())
    for joint, left in short.items():
        plain = [x for x in left if not x.isdigit()]
        if counts[left] == 1 and plain and not (len(left) == 1 and (len(left[0]) < 2 or left[0] in _SIGNAL_WORDS)):
            words[joint] = tuple(dict.fromkeys((*words[joint], left)))
    return words


def _symmetric(reading: _Reading, known: _Known) -> bool:
    """Whether the joint's name and the word for the signal are the same, as in q_q."""
    return reading.rest in known[reading.joint]


def _readings(words: tuple[str, ...], known: _Known, bare: bool = False) -> list[_Reading]:
    """The best readings of a name as a joint and a signal: several only where they differ in the signal.

    The other words must name a signal, if possible and nothing else; longer joint names go before those they contain.
    """
    readings = []
    for joint, parts in ((joint, form) for joint, forms in known.items() for form in forms):
        for k in range(len(words) - len(parts) + 1 if parts else 0):
            rest = words[:k] + words[k + len(parts) :]
            if words[k : k + len(parts)] == parts and (rest or bare):
                readings.append(_Reading(joint, k, k + len(parts), rest))
    best = max((r.rank for r in readings), default=0)
    readings = [r for r in readings if r.rank == best]
    readings = [r for r in readings if not any(r.inside(other) for other in readings)]
    if best < 2:
        return sorted(readings, key=lambda r: (r.start - r.stop, r.start))[:1]
    # Of two readings as one signal the first holds: what follows is a unit, as in "current x [A]" with a joint a.
    first: dict[str | None, _Reading] = {}
    for reading in sorted(readings, key=lambda r: r.start):
        first.setdefault(reading.signal, reading)
    return list(first.values())
