"""The robot model: an immutable kinematic tree with links, joints, drives, gravity and the type of base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dynid.robot.constraints import Constraint
from dynid.robot.effects import effect_terms
from dynid.robot.elements import ForceElement, element_terms
from dynid.robot.loops import close_loops
from dynid.robot.mechanism import Mechanism

if TYPE_CHECKING:
    import pinocchio as pin

__all__ = ["Robot"]


@dataclass(frozen=True, eq=False, repr=False)
class Robot(Mechanism):
    """A kinematic tree with its drives, gravity and base. Immutable: methods `with_...` return a changed copy.

    Robots usually come from `dynid.load_robot`, `Robot.from_dh` or `Robot.from_pinocchio`.

    Attributes
    ----------
    name : str
        Name of the robot.
    links : tuple of Link
        `links[0]` is the base link; `links[i + 1]` is the child link of `joints[i]`. Parents come before children.
    joints : tuple of Joint
        Revolute and prismatic joints, mimic joints included.
    drives : tuple of DriveTerm
        Friction, rotor inertia, offsets and springs, sorted by joint.
    gravity : ndarray, shape (3,)
        Gravity vector in the base frame (m/s2).
    base : {"fixed", "floating", "instrumented"}
        "fixed": joint torques only. "floating": a free-flyer root, q starts with the position and the quaternion
        (x, y, z, w), v with the twist in the body frame. "instrumented": a fixed base whose reaction wrench is
        measured, which adds six torque rows and the inertial parameters of the base link.
    transmission : Transmission or None
        Coupling between motors and joints, None where every motor drives one joint.
    frames : tuple of Frame
        Named frames fixed to links.
    merged : tuple of Merge
        Links on fixed or locked joints, whose inertia was added to the link that carries them.
    source : str
        File or publication of the model.
    loops : tuple of Loop and JointEquality
        Constraints that close kinematic loops or couple joints; see `with_loops`.
    passive : tuple of str
        Joints that the loops determine. They are not coordinates, but may have drive terms and limits.
    assembled : ndarray, shape (number of tree coordinates,), or None
        Posture in which the loops close (rad or m). It chooses the branch of the assembly.
    postures : dict of str to dict
        Named postures of the source (keyframes of MJCF): position of each independent joint (rad or m) by its name.
    notes : tuple of str
        Sentences on what the source holds and this robot does not, or holds in another form.

    Raises
    ------
    ModelError
        If the tree is inconsistent: wrong counts or order, repeated names, drive terms of the wrong size.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> robot.n, robot.coordinates
    (2, ('joint1', 'joint2'))
    >>> robot.with_drives("viscous+coulomb").parameter_names[10:13]
    ('Ia_joint1', 'fv_joint1', 'fc_joint1')
    """

    def with_elements(self, *elements: ForceElement) -> Robot:
        """A copy with springs, counterbalance cylinders or gas springs between two points of the robot.

        Parameters
        ----------
        *elements : ForceElement
            Elements; see `dynid.robot.elements`.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            For unknown links, and for links without a joint between them.
        """
        return self.with_terms(*(term for element in elements for term in element_terms(self, element)))

    def with_effects(self, *effects: str) -> Robot:
        """A copy with effects beside bodies and plain friction, such as friction that grows with the load.

        Parameters
        ----------
        *effects : str
            Names of `dynid.robot.effects.EFFECTS`, with joints and a value where they need one.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            For unknown effects and joints.

        Examples
        --------
        >>> import dynid
        >>> robot = dynid.load_robot("twolink").with_effects("load-friction", "ripple=joint2:30")
        >>> [name for name in robot.parameter_names if name.startswith(("fl", "rs", "rc"))]
        ['fl_joint1', 'fl_joint2', 'rs30_joint2', 'rc30_joint2']
        """
        return self.with_terms(*(term for effect in effects for term in effect_terms(self, effect)))

    def with_loops(
        self,
        loops: Constraint | Sequence[Constraint],
        *,
        passive: Sequence[str] | None = None,
        posture: Mapping[str, float] | None = None,
    ) -> Robot:
        """A copy with closed kinematic loops or equalities between joints, in place of those that it has.

        The coordinates of the copy are the independent joints only: q, v, a, torques and recordings have one column per
        independent joint. The passive joints follow from them.

        Parameters
        ----------
        loops : Loop, JointEquality, or sequence of these
            Constraints between frames or joints of the tree.
        passive : sequence of str, optional
            Joints that the loops determine. If not given, they are chosen such that the loops determine them at the
            assembled posture: joints without drive terms before joints with drive terms, and among these, later joints
            before earlier ones.
        posture : mapping, optional
            Joint name to position (rad or m) near which the loops close; zero for other joints, or the middle of their
            limits. It chooses the branch of the assembly where there are several.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            If a loop cannot close or is redundant, if the posture is singular, or if the passive joints are not those
            that the loops determine. The message names the frames.
        """
        return close_loops(self.tree, (loops,) if isinstance(loops, Constraint) else tuple(loops), passive, posture)

    def locked(self, values: Mapping[str, float]) -> Robot:
        """A copy in which some joints are fixed; their links are merged into the links that carry them.

        Parameters
        ----------
        values : mapping
            Joint name to position (rad or m). Mimic joints of a locked joint are locked too.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            For joints that are unknown or mimic another one, or if no joint would remain.
        """
        from dynid.robot.lock import lock_joints

        return lock_joints(self, values)

    @staticmethod
    def from_pinocchio(model: pin.Model, *, name: str | None = None) -> Robot:
        """Robot from a Pinocchio model, without drive terms.

        Parameters
        ----------
        model : pinocchio.Model
            A free-flyer root joint gives a floating base.
        name : str, optional
            Name of the robot; that of the model if not given.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            For joint types other than revolute, prismatic, mimic and a free-flyer root.
        """
        from dynid.robot.pinocchio import robot_from_model

        return robot_from_model(Robot, model, name=name)

    def to_pinocchio(self, *, independent: bool = False) -> pin.Model:
        """Pinocchio model with one joint per joint of this robot, in Pinocchio's depth-first order.

        Joint-side rotor inertia becomes `armature`. Coupled drives are not represented.

        Parameters
        ----------
        independent : bool
            Turn mimic joints and passive joints of closed loops into independent joints; otherwise they are refused.

        Returns
        -------
        pinocchio.Model

        Raises
        ------
        ModelError
            For a robot with mimic joints or closed loops, unless `independent`.
        """
        from dynid.robot.pinocchio import model_of_robot

        return model_of_robot(self, independent=independent)

    @staticmethod
    def from_dh(
        rows: Sequence[Mapping[str, Any] | Sequence[float]],
        convention: Literal["standard", "modified"] = "standard",
        *,
        name: str = "robot",
        **options: Any,
    ) -> Robot:
        """Robot from a table of Denavit-Hartenberg parameters.

        Parameters
        ----------
        rows : sequence
            One entry per joint: (alpha, a, d, theta) in rad and m, or a mapping with the keys of a [[joint]] table of
            the TOML robot file (see the page on robot files).
        convention : {"standard", "modified"}
            Denavit-Hartenberg convention; modified is that of Khalil and Craig.
        name : str
            Name of the robot.
        **options
            Other keys of the TOML robot file, such as gravity, base and motor.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            For unknown keys and inconsistent values.

        Examples
        --------
        >>> from dynid import Robot
        >>> Robot.from_dh([(0.0, 0.0, 0.3, 0.0), (1.5708, 0.0, 0.0, 0.0)], "modified", name="arm")
        Robot('arm', 2 joints, 20 parameters, fixed base)
        """
        from dynid.robot.dh import robot_from_rows

        return robot_from_rows(Robot, rows, convention, name, **options)
