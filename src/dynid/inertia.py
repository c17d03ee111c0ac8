"""Inertial parameters of rigid bodies: conversions between forms and orders, and checks of physical consistency."""

from dynid.robot.inertia import (
    inertia_from_com,
    inertia_from_log_cholesky,
    inertia_from_pseudo,
    inertia_from_spatial,
    inertia_to_com,
    inertia_to_log_cholesky,
    inertia_to_pseudo,
    inertia_to_spatial,
    inertia_violations,
    move_inertia,
    reorder_inertia,
)
from dynid.robot.inertia_slopes import com_jacobian

__all__ = [
    "com_jacobian",
    "inertia_from_com",
    "inertia_from_log_cholesky",
    "inertia_from_pseudo",
    "inertia_from_spatial",
    "inertia_to_com",
    "inertia_to_log_cholesky",
    "inertia_to_pseudo",
    "inertia_to_spatial",
    "inertia_violations",
    "move_inertia",
    "reorder_inertia",
]
