"""Real arms as fleets: the UR10e over five months with and without a payload, and three designs of a double pendulum."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np

from dynid.errors import DynidError
from dynid.fleet.entries import FleetEntry
from dynid.fleet.identify import identify_fleet
from dynid.recording.load import load_recording
from dynid.robot.model import Robot
from studies.reproduce.drives import SIGNALS, TOOL, calibrate, ur10e, with_gains
from studies.reproduce.robot_cases import CASES
from studies.reproduce.study import Figure, data_folder, published
