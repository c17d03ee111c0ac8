"""Errors of Python functions in the words of the command line: keywords become the options that set them."""

from __future__ import annotations

import re

from dynid.errors import DynidError

__all__ = ["BY_COMMAND", "OPTIONS", "option_words", "with_options"]

# Keyword of a public function, and the option that sets it.
OPTIONS = {
    # load_robot
    "friction": "--friction",
    "rotor_inertia": "--rotor-inertia",
    "effects": "--effect",
    "gravity": "--gravity",
    "base": "--base",
    "limits": "--limits",
    "lock": "--lock",
    "snap_angles": "--snap-angles",
    "ignore_loops": "--ignore-loops",
    "inertia_from": "--inertia-from",
    "density": "--density",
    "shape_mass": "--shape-mass",
    # load_recording
    "time": "--time",
    "rate": "--rate",
    "columns": "--columns",
    "units": "--units",
    "scale": "--scale",
    "sign": "--sign",
    "offset": "--offset",
    "gain": "--gain",
    "motor_side": "--motor-side",
    "joints": "--joints",
    "rows": "--rows",
    "bad_rows": "--bad-rows",
    "topic": "--topic",
    # open_dataset, identify on data sets
    "skip_bad": "--skip-bad-partitions",
    "client": "--cluster",
    "device": "--device",
    # Signals
    "cutoff": "--cutoff",
    "decimate": "--decimate",
    "min_velocity": "--min-velocity",
    "measured_velocity": "--measured-velocity",
    "measured_acceleration": "--measured-acceleration",
    "trim": "--trim",
    "delay": "--delay",
    # identify, ClosedLoop
    "method": "--method",
    "constraints": "--constraints",
    "prior_weight": "--prior-weight",
    "mass": "--mass",
    "link_masses": "--link-mass",
    "box": "--no-box",
    "start": "--start",
    "controller": "--controller",
    "loop": "--controller",
    "velocity_cutoff": "--velocity-cutoff",
    "integrator": "--integrator",
    "coulomb_slope": "--coulomb-slope",
    "metric": "--metric",
    # export, generate_code
    "allow_infeasible": "--allow-infeasible",
    "untrusted": "--untrusted",
    "template": "--template",
    "functions": "--functions",
    "language": "--to",
    "parameters": "--parameters",
    "name": "--name",
    "date": "--date",
    # base_parameters, LiveExcitation
    "channels": "--channels",
    "target": "--target",
    # design_excitation, simulate
    "family": "--family",
    "size": "--size",
    "criterion": "--criterion",
    "chosen": "--chosen",
    "budget": "--budget",
    "time_limit": "--time-limit",
    "after": "--after",
    "most": "--stack",
    "least_gain": "--least-gain",
    "duration": "--duration",
    "seed": "--seed",
    "torque_noise": "--torque-noise",
    "counts": "--counts",
    "stop_at_limits": "--stop-at-limits",
    # fit_friction
    "joint": "--joint",
    "models": "--models",
    "load": "--load",
    "temperature": "--temperature",
    "level": "--level",
    # identify_payload, identify_drive_gains
    "link": "--link",
    "form": "--form",
    "center": "--center",
    "centre": "--center",
    "free": "--free",
    "payload": "--payload-mass",
    "shared": "--shared",
    "model": "MODEL",
    "positive": "--negative",
    # calibrate_sensors
    "reference": "--reference-joints",
    # OnlineIdentification
    "forgetting": "--forgetting",
    "window": "--window",
    # fit_residual
    "kernel": "--kernel",
    "rigid": "--rigid",
    "bound": "--bound",
    "points": "--points",
    # human_model
    "sex": "--sex",
    "height": "--height",
    "weight": "--weight",
    "symmetry": "--symmetry",
}
# Commands in which a keyword is set by another option.
BY_COMMAND = {
    "inspect": {"method": "--grouping"},
    "excite": {
        "start": "--start-posture",
        "noise": "--torque-noise",
        "share": "--limit-share",
    },
    "chirp": {
        "rate": "--output-rate",
        "start": "--start-posture",
        "noise": "--position-noise",
        "amplitude": "--amplitude",
        "acceleration": "--limits",
    },
    "simulate": {"rate": "--output-rate", "noise": "--position-noise", "delay": "--control-delay"},
    "live": {"noise": "--channel-noise"},
    "friction": {"criterion": "--selection"},
    "compensate": {"noise": "--noise-model", "method": "--gp-method"},
}
# Keywords that take a value per signal; their options are repeated, such as --units t=ms --units q=deg.
_BY_SIGNAL = ("columns", "units", "scale", "sign", "offset", "link_masses")
_PAIR = re.compile(r"['\"](\w+)['\"]: ['\"]?([^'\",{}]*(?:\{\w+\}[^'\",{}]*)?)")
_TABLE = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_VALUE = rf"(?:True|False|None|\.\.\.|'[^']*'|\"[^\"]*\"|{_TABLE}|\[[^\][]*\]|\([^()]*\)|-?\d[\d.]*(?:e-?\d+)?)?"


def with_options(error: DynidError, command: str | None = None) -> DynidError:
    """The error with options in place of keywords.

    Parameters
    ----------
    error : DynidError
        What a function raised, for example "... rate= (Hz) ..." or "... allow_infeasible=True ...".
    command : str, optional
        The command that was run, for keywords that it sets by an option of its own.

    Returns
    -------
    DynidError
        An error of the same type that names --rate or --allow-infeasible.
    """
    text = option_words(str(error), command)
    return error if text == str(error) else type(error)(text)


def option_words(text: str, command: str | None = None) -> str:
    """A message with options in place of keywords: "rate=100" becomes "--rate 100", "rate must" "--rate must"."""
    options = OPTIONS | BY_COMMAND.get(command or "", {})
    names = "|".join(sorted(options, key=len, reverse=True))

    def given(found: re.Match[str]) -> str:
        option, value = options[found[1]], found[2]
        if value in ("", "True", "False", "..."):
            return option
        if found[1] in _BY_SIGNAL and value.startswith("{"):
            return " ".join(f"{option} {signal}={one}" for signal, one in _PAIR.findall(value))
        return f"{option} {'none' if value == 'None' else value.strip(chr(39) + chr(34))}"

    # The fields of a ClosedLoop have options of their own.
    text = re.sub(r"\bloop=(?:dynid\.)?ClosedLoop\(([^()]*)\)", r"\1", text)
    # Not the folders of a partition, date=2025-01-01/run=1.parquet.
    text = re.sub(rf"(?<![-\w./])({names})=(?!=)({_VALUE})(?!\S*\.(?:parquet|pq)\b)", given, text)
    # A message that begins with the keyword itself.
    subject = rf"^({names})(?= (?:must|takes|knows|names|has|is given|of|'[^']*' is)\b|: signal)"
    return re.sub(subject, lambda found: options[found[1]], text)
