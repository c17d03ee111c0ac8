"""Arguments and options that several commands share, each with one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import complete

RobotArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="ROBOT",
        autocompletion=complete.robots,
        help="URDF, MJCF, SDF or TOML file, or a built-in name. [that of dynid.toml]",
    ),
]
EstimateArgument = Annotated[
    str | None,
    typer.Argument(metavar="ESTIMATE", help="Saved estimate of `dynid identify`. [that of dynid.toml]"),
]
ModelArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        autocompletion=complete.robots,
        help="Robot file, built-in name, or saved estimate (.json). [those of dynid.toml]",
    ),
]
FrictionArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        autocompletion=complete.robots,
        help="Robot file, built-in name, or saved selection of `dynid friction -o` (.json). [robot of dynid.toml]",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA",
        help="Log files, one run each; q=POS.csv,torque=CUR.csv for one file per signal; or a folder of Parquet "
        "partitions. [those of dynid.toml]",
    ),
]
# Data sets.
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers read the recordings: tcp://host:8786."),
]
Device = Annotated[
    str | None,
    typer.Option(help="Device of PyTorch that folds the recordings: cuda for a graphics card. [the processor]"),
]
SkipBadPartitions = Annotated[
    bool,
    typer.Option("--skip-bad-partitions", help="Leave out partitions that cannot be used, and say which."),
]
ProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project", help="Project file with robot, log format, runs and settings. [dynid.toml unless ROBOT is given]"
    ),
]

# How the robot is modelled.
Friction = Annotated[
    str | None,
    typer.Option(
        autocompletion=complete.friction,
        help="Joint friction, e.g. viscous+coulomb+offset, or none. auto: what method auto chooses per joint. "
        "[file's own]",
    ),
]
RotorInertia = Annotated[
    bool | None, typer.Option("--rotor-inertia/--no-rotor-inertia", help="Model rotor inertias. [file's own]")
]
Drives = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Servo of the library, or its TOML file, whose armature and friction joints have."
    ),
]
Effects = Annotated[
    list[str] | None,
    typer.Option(
        "--effect",
        metavar="NAME",
        autocompletion=complete.effects,
        help="Effect of the drives beside friction: load-friction, ripple=JOINT:PERIODS, counterbalance=JOINT, spring, "
        "quadratic-friction, coupled-friction=JOINT:OTHER, coupled-inertia=JOINT:OTHER; may be repeated. [none]",
    ),
]
Base = Annotated[
    str | None, typer.Option("--base", help="fixed, floating, or instrumented (base wrench measured). [file's own]")
]
Gravity = Annotated[
    tuple[float, float, float] | None,
    typer.Option(metavar="X Y Z", help="Gravity vector in the base frame, m/s2. [file's own]"),
]
Lock = Annotated[
    str | None,
    typer.Option(
        metavar="JOINTS",
        help="Joints held at zero, or at NAME=VALUE in rad or m; separated by commas; head_* for several. [none]",
    ),
]
SnapAngles = Annotated[
    bool | None,
    typer.Option(
        "--snap-angles/--no-snap-angles", help="Make angles such as 1.5708 exact multiples of pi/2. [no, only named]"
    ),
]

IgnoreLoops = Annotated[
    bool | None,
    typer.Option("--ignore-loops/--close-loops", help="Leave out the closed loops of the robot file. [closed]"),
]
InertiaFrom = Annotated[
    str | None,
    typer.Option(
        "--inertia-from", help="collision or visual: shapes that give the inertia of links without one (URDF, SDF)."
    ),
]
Density = Annotated[float | None, typer.Option(help="Density of these shapes in kg/m3. [1000]")]
ShapeMass = Annotated[
    float | None, typer.Option("--shape-mass", help="Mass in kg of all links with inertia from shapes, together.")
]

Law = Annotated[
    str | None,
    typer.Option(
        help="Law of the actuators: pd:KP,KD, pd for gains that are unknown too, file for the position actuators of "
        "the MJCF file, torque for logged torques, or a TOML file."
    ),
]

ControlRate = Annotated[
    float | None, typer.Option(help="Frequency in Hz at which the law is computed. [it acts continuously]")
]
Hold = Annotated[str | None, typer.Option(help="Command between two rows of the log: zero (held) or linear. [zero]")]
Unknown = Annotated[
    str | None,
    typer.Option(
        help="Unknown quantities separated by commas: armature, damping, friction, stribeck, offset, bodies, kp, "
        "kd, gain, delay, torque_limit, back_emf, stall_torque, no_load_velocity, backlash, load_friction, bias, "
        "friction_lead, friction_width; "
        "each with =joint, =shared or =PATTERN;PATTERN for joints that share it. [armature,damping,friction,delay; "
        "kp,kd too with --law pd]"
    ),
]

# What is known of the bodies that are identified.
Mass = Annotated[
    str | None,
    typer.Option(
        "--mass",
        metavar="KG",
        help="Mass of the robot's moving bodies together, from scales or data sheet: 16 or 16kg.",
    ),
]
LinkMass = Annotated[
    list[str] | None,
    typer.Option(
        "--link-mass",
        metavar="LINK=KG",
        autocompletion=complete.link_masses,
        help="Mass of a link: link2=4.8; finger*=0.1 for each link that matches; may be repeated.",
    ),
]
Box = Annotated[
    bool | None,
    typer.Option("--box/--no-box", help="Keep the bodies inside the plausible box around the a-priori ones. [yes]"),
]

# How logs are read: the fields of a LogFormat.
Time = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Time column by name or number (from 0), or none with --rate. [guessed]"),
]
Rate = Annotated[float | None, typer.Option(help="Sampling rate in Hz of logs without a time column.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SIGNAL=COLUMNS", help="Columns of a signal: q=pos_{i}, torque=7:14; may be repeated. [guessed]"
    ),
]
Units = Annotated[
    list[str] | None, typer.Option(metavar="SIGNAL=UNIT", help="Unit of a signal: q=deg, t=ms; may be repeated. [SI]")
]
Scale = Annotated[
    list[str] | None,
    typer.Option(metavar="SIGNAL=FACTOR", help="Factor of a signal: torque=2, or one per joint; may be repeated."),
]
Sign = Annotated[
    list[str] | None,
    typer.Option(metavar="SIGNAL=SIGN", help="Sign of a signal: torque=-1, or one per joint; may be repeated."),
]
Offset = Annotated[
    list[str] | None,
    typer.Option(metavar="SIGNAL=NUMBER", help="Added to a signal: q=0,-1.57,0; SI units; may be repeated."),
]
Gain = Annotated[str | None, typer.Option(help="Drive gains in N m/A or N/A, one or one per joint: 10,10.7,8.5.")]
MotorSide = Annotated[
    bool | None,
    typer.Option("--motor-side/--no-motor-side", help="Signals are on the motor side of the transmission. [no]"),
]
Joints = Annotated[
    str | None, typer.Option(metavar="JOINTS", help="Joints as the log names or numbers (from 0) them, in robot order.")
]
Rows = Annotated[
    str | None,
    typer.Option(
        metavar="START:STOP",
        help="Rows of each log to use, counted from 0. Logs of --validate are read whole. [all]",
    ),
]
BadRows = Annotated[
    str | None, typer.Option(help="error, or split: drop unusable rows and split the run there. [error]")
]
Topic = Annotated[str | None, typer.Option(help="Topic of a ROS bag or MCAP file that holds the joint states.")]

# How signals are cleaned.
Cutoff = Annotated[str | None, typer.Option(help="Low-pass of positions in Hz, or none. [found from the data]")]
Decimate = Annotated[str | None, typer.Option(help="Parallel decimation in stages: 10,10, or none. [from the cut-off]")]
MinVelocity = Annotated[
    str | None,
    typer.Option(help="Rows of joints below this velocity are left out: 0.05, or a percentage of the highest as 1%."),
]
MeasuredVelocity = Annotated[
    bool | None,
    typer.Option(
        "--measured-velocity/--no-measured-velocity", help="Use recorded velocities, not the rate of positions. [no]"
    ),
]
MeasuredAcceleration = Annotated[
    bool | None,
    typer.Option(
        "--measured-acceleration/--no-measured-acceleration",
        help="Use recorded accelerations, not the rate of velocities. [no]",
    ),
]
Trim = Annotated[float | None, typer.Option(help="Seconds left out at both ends of a run. [0.2]")]
Delay = Annotated[float | None, typer.Option(help="Seconds by which torques lag behind positions. [0]")]

# Motion that is held out for validation.
Validate = Annotated[
    list[str] | None,
    typer.Option("--validate", metavar="LOG", help="Log of other motion to validate on; may be repeated."),
]
ValidateShare = Annotated[
    float | None,
    typer.Option(
        "--validate-share", metavar="SHARE", help="Hold out this last share of each run to validate on: 0.25."
    ),
]
ValidateRows = Annotated[
    str | None,
    typer.Option(
        "--validate-rows", metavar="START:STOP", help="Rows START:STOP of each log to validate on, counted from 0."
    ),
]

# The closed loop.
Controller = Annotated[
    Path | None, typer.Option(help="TOML file of the controller: kind, rate, gains or bandwidth. [none]")
]
VelocityCutoff = Annotated[
    float | None, typer.Option(help="Low-pass in Hz of the velocities that the controller measures. [none]")
]
Integrator = Annotated[str | None, typer.Option(help="auto, rk4, semi-implicit, dopri5 or implicit. [auto]")]
CoulombSlope = Annotated[
    str | None,
    typer.Option(
        help="Slope of smooth Coulomb friction in s/rad or s/m, one number or one per joint; auto, from the velocities "
        "of each joint; or exact, with --integrator implicit. [auto]"
    ),
]

# Random numbers and sensors.
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]
OutputRate = Annotated[float | None, typer.Option(help="Samples per second of the file that is written, Hz.")]
PositionNoise = Annotated[
    str, typer.Option(help="Standard deviation of measured positions, rad or m, one or one per joint.")
]
TorqueNoise = Annotated[
    str | None, typer.Option(help="Standard deviation of measured torques, N m or N, one or one per joint.")
]
Channels = Annotated[
    str | None, typer.Option(help="Measured channels: torque, wrench, all, or names separated by commas.")
]

# Motions that are designed.
StartPosture = Annotated[
    str | None, typer.Option(help="Posture at the start, one value per joint: 0,0.5,-1. [chosen by the design]")
]

Avoid = Annotated[
    Path | None, typer.Option(help="TOML file of obstacles and shapes to keep clear of; a URDF's own shapes count.")
]

# What is written.
Figure = Annotated[Path | None, typer.Option(help="Draw a figure of the result into this SVG file.")]
LimitsOption = Annotated[
    str | None,
    typer.Option("--limits", help="Limits by joint pattern: a TOML or JSON file, or JSON itself. [the robot's own]"),
]
ParameterTable = Annotated[bool, typer.Option("--table", help="Also print the table of base parameters.")]
Require = Annotated[
    str | None, typer.Option("--require", help="trusted or care: exit with code 3 if the verdict is worse.")
]
ResultReport = Annotated[
    Path | None, typer.Option("--report", help="Write a page with the verdict, its reasons and figures (.html).")
]
AllowInfeasible = Annotated[
    bool,
    typer.Option("--allow-infeasible", help="Write a robot even if its parameters are not physically consistent."),
]
Draws = Annotated[
    int | None, typer.Option(help="Write ranges of this many draws of the parameters, for randomized training.")
]
Untrusted = Annotated[
    bool, typer.Option("--untrusted", help="Write a model although the verdict on its estimate is 'do not use'.")
]

MODELLING = {
    "friction": Friction,
    "rotor_inertia": RotorInertia,
    "drives": Drives,
    "effects": Effects,
    "base": Base,
    "gravity": Gravity,
    "lock": Lock,
    "snap_angles": SnapAngles,
    "ignore_loops": IgnoreLoops,
    "inertia_from": InertiaFrom,
    "density": Density,
    "shape_mass": ShapeMass,
}
READING = {
    "time": Time,
    "rate": Rate,
    "columns": Columns,
    "units": Units,
    "scale": Scale,
    "sign": Sign,
    "offset": Offset,
    "gain": Gain,
    "motor_side": MotorSide,
    "joints": Joints,
    "rows": Rows,
    "bad_rows": BadRows,
    "topic": Topic,
}
CLEANING = {
    "cutoff": Cutoff,
    "decimate": Decimate,
    "min_velocity": MinVelocity,
    "measured_velocity": MeasuredVelocity,
    "measured_acceleration": MeasuredAcceleration,
    "trim": Trim,
    "delay": Delay,
}
