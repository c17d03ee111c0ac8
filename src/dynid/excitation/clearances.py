"""Clearances: limits of a motion beside those of its joints."""

from dynid.excitation.balance import MovingSupport, SupportPolygon
from dynid.excitation.collision import Collision, LinkShape, Obstacle
from dynid.excitation.linkage import PassiveJoints
from dynid.excitation.workspace import KeepIn

__all__ = ["Collision", "KeepIn", "LinkShape", "MovingSupport", "Obstacle", "PassiveJoints", "SupportPolygon"]
