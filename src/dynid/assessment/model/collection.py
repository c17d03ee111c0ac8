"""Collections of robot files: which of them load, and whether their dynamics are those of other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dynid.assessment.model.other_code import Differences, against_mujoco, against_pinocchio
from dynid.errors import DynidError, MissingFile, ModelError, NoJointsError
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.robot.xmlfile import read_xml

__all__ = ["Collection", "ModelCheck", "ModelState", "check_models"]

SAME = 1e-8  # of the largest value: two programs in double precision on files of any size


class ModelState(StrEnum):
    """What became of a file."""

    AGREES = "agrees"  # it loads, with the dynamics of the other program
    LOADS = "loads"  # it loads, and there is no other program that reads it
    DIFFERS = "differs"
    REFUSED = "refused"
    NO_JOINTS = "no joints"  # a part of a model, or a scene
    INVALID = "invalid"  # the other program does not read it either


@dataclass(frozen=True)
class ModelCheck:
    """One file.

    Attributes
    ----------
    file : str
        Path below the folder.
    state : ModelState
        What became of it.
    reason : str
        Why it was not read.
    difference : float or None
        Largest difference over the largest value, of mass matrix, bias and inverse dynamics.
    joints, loops : int
        Number of independent joints and of closed loops.
    notes : tuple of str
        What the robot does not hold of the file.
    """

    file: str
    state: ModelState
    reason: str = ""
    difference: float | None = None
    joints: int = 0
    loops: int = 0
    notes: tuple[str, ...] = ()

    def line(self) -> str:
        """The file on one line."""
        if self.difference is None:
            return f"{self.state:<10} {self.file}  {self.reason}".rstrip()
        loops = f", {self.loops} closed loops" if self.loops else ""
        notes = f", notes: {len(self.notes)}" if self.notes else ""
        return f"{self.state:<10} {self.file}  {self.difference:.0e}, {self.joints} joints{loops}{notes}"


@dataclass(frozen=True)
class Collection:
    """All robot files of a folder.

    Attributes
    ----------
    models : tuple of ModelCheck
        One per file.
    """

    models: tuple[ModelCheck, ...]

    @property
    def ok(self) -> bool:
        """Whether every file that another program reads as a robot loads and agrees."""
        return all(m.state not in (ModelState.DIFFERS, ModelState.REFUSED) for m in self.models)

    def summary(self) -> str:
        """The number of files in each state."""
        count = Counter(m.state for m in self.models)
        return f"{len(self.models)} files: " + ", ".join(f"{count[s]} {s}" for s in ModelState if count[s])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"ok": self.ok, "summary": self.summary(), "models": [asdict(m) for m in self.models]}


def check_models(folder: str | Path, progress: Callable[[ModelCheck], None] | None = None) -> Collection:
    """Load every robot file below a folder and compare it with MuJoCo (MJCF) or Pinocchio (URDF).

    Mass matrix, bias and inverse dynamics at random samples must agree to 1e-8 of the largest value; closed loops are
    compared through the Jacobians of MuJoCo's constraints. URDF files are compared with a fixed and a floating base.
    What the notes of a robot say is not modeled is left out of the comparison.

    Parameters
    ----------
    folder : str or Path
        The folder.
    progress : callable, optional
        Gets each file as it is done.

    Returns
    -------
    Collection

    Raises
    ------
    DataError
        If the folder holds no robot file.
    """
    models = []
    for path, kind in _files(Path(folder)):
        models.append(_check(path, kind, str(path.relative_to(folder))))
        if progress is not None:
            progress(models[-1])
    if not models:
        raise MissingFile(f"there is no URDF, MJCF or SDF file below '{folder}'", "folder")
    return Collection(tuple(models))


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Robot files and their formats, sorted by path."""
    roots = {"robot": "urdf", "mujoco": "mjcf", "sdf": "sdf"}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (".urdf", ".xml", ".mjcf", ".sdf") and path.is_file():
            try:
                kind = roots.get(read_xml(path).tag)
            except ModelError:
                kind = path.suffix.lower()[1:] if path.suffix.lower() in (".urdf", ".sdf") else None
            if kind is not None:
                yield path, kind


def _check(path: Path, kind: str, file: str) -> ModelCheck:
    try:
        robot = _loaded(path, kind)
    except ModelError as error:
        refusal = _other_refusal(path, kind)
        if refusal:
            return ModelCheck(file, ModelState.INVALID, refusal)
        state = ModelState.NO_JOINTS if isinstance(error, NoJointsError) else ModelState.REFUSED
        return ModelCheck(file, state, str(error))
    known = {"joints": robot.n, "loops": len(robot.loops), "notes": robot.notes}
    refusal = _other_refusal(path, kind)
    if refusal or kind == "sdf":
        return ModelCheck(file, ModelState.LOADS, refusal, **known)  # type: ignore[arg-type]
    try:
        found = _differences(path, kind, robot)
    except DynidError as error:
        return ModelCheck(file, ModelState.REFUSED, str(error), **known)  # type: ignore[arg-type]
    worst = max(x.largest for x in found)
    state = ModelState.AGREES if worst < SAME else ModelState.DIFFERS
    return ModelCheck(file, state, difference=worst, **known)  # type: ignore[arg-type]


def _loaded(path: Path, kind: str) -> Robot:
    """The robot of a file; a URDF file of one body is a floating one, such as a drone."""
    try:
        return load_robot(path)
    except NoJointsError:
        if kind != "urdf":
            raise
        return load_robot(path, base="floating")


def _differences(path: Path, kind: str, robot: Robot) -> list[Differences]:
    if kind == "mjcf":
        return [against_mujoco(path)]
    if robot.base == "floating":
        return [against_pinocchio(path, floating=robot.n == 0)]
    return [against_pinocchio(path, floating=floating) for floating in (False, True)]


def _other_refusal(path: Path, kind: str) -> str:
    """Why the other program does not read a file; empty if it does, or if there is none."""
    if kind == "mjcf":
        from dynid.robot.mjcf_compiled import compile_file
        from dynid.robot.mjcf_files import check_mjcf

        try:
            check_mjcf(path)
            compile_file(path)
        except ModelError as error:
            return str(error)
    elif kind == "urdf":
        import pinocchio as pin

        from dynid.robot.xmlfile import read_xml

        try:
            read_xml(path)
            pin.buildModelFromUrdf(str(path))
        except ModelError as error:
            return str(error)
        except (RuntimeError, ValueError) as error:
            return f"Pinocchio cannot read {path.name}: {(str(error).strip() or 'it is no URDF').splitlines()[-1]}"
    return ""
