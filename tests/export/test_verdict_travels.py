"""Every file that is made of an estimate holds its verdict, its domain, and what decided each body."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import dynid
from dynid import DataError, Estimate, Robot
from dynid.cli.main import app
from dynid.errors import DamagedFile
from dynid.export.label import Label, label_of
from dynid.export.simulators.registry import simulator_names, simulator_target
from dynid.feasibility.box import Wall
from dynid.identification import ParameterDraws
from dynid.identification.bodies import Decided, body_origins, body_values_and_slopes
from dynid.identification.domain import Domain
from dynid.identification.judgement import Grade, Judgement
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, record

GRADES: tuple[Grade, ...] = ("trusted", "use with care", "do not use", "not assessed")
REASON, DOMAIN = "the error on unseen motion is 7.3 %", "Velocities up to 1.5 rad/s at joint1."
# Breaks out of comments and quotes of every format, and ends lines.
HOSTILE = "--> */ \"\"\" ''' \\ \n\r\u2028 \x00 ]]> <!-- %}{ \\end"


def told(domain: Domain | None, words: str) -> Domain:
    """A domain that says something else."""

    class Told(Domain):
        def sentences(self) -> tuple[str, ...]:
            return (words,)

    assert domain is not None
    return Told(**{x.name: getattr(domain, x.name) for x in fields(domain)})


@pytest.fixture(scope="module")
def plain() -> Estimate:
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    return dynid.identify(robot, record(robot, noise=0.02, samples=400), "feasible", signals=EXACT)


def judged(estimate: Estimate, grade: Grade, reason: str = REASON, domain: str = DOMAIN) -> Estimate:
    """The estimate with a verdict and a domain."""
    out = replace(estimate) if grade == "not assessed" else estimate.with_judgement(Judgement(grade, (reason,), True))
    out = replace(out, domain=told(estimate.domain, domain))
    return out


def law(robot: Robot) -> ActuatorLaw:
    return ActuatorLaw(robot.coordinates, kp=20.0, kd=0.5)


# -- every format --------------------------------------------------------------------------------------


def model(name: str, template: bool = False) -> Callable[[Estimate, Path, bool], list[Path]]:
    def write(estimate: Estimate, folder: Path, untrusted: bool) -> list[Path]:
        own = folder / f"own.{name}"
        if template:
            dynid.export.write(estimate.robot, own)
        path = folder / f"model.{name}"
        dynid.export.write(estimate, path, template=own if template else None, untrusted=untrusted)
        return [path]

    return write


def code(language: str) -> Callable[[Estimate, Path, bool], list[Path]]:
    def write(estimate: Estimate, folder: Path, untrusted: bool) -> list[Path]:
        if language == "casadi":
            pytest.importorskip("casadi")
        made = dynid.generate_code(estimate, ("gravity_torque",), language=language, name="made", untrusted=untrusted)
        paths = made.write(folder)
        return [p for p in paths if p.suffix != ".c"]  # the head of C code stands in its header

    return write


def actuators(simulator: str, template: str = "") -> Callable[[Estimate, Path, bool], list[Path]]:
    def write(estimate: Estimate, folder: Path, untrusted: bool) -> list[Path]:
        own = folder / f"own{template}"
        if template:
            # Comments of another verdict must not stay.
            dynid.export.write(judged(estimate, "trusted", "an old reason"), own)
        path = folder / f"actuators{simulator_target(simulator).ending}"
        settings: dict[str, Any] = {"template": own if template else None, "untrusted": untrusted}
        dynid.export.write_actuators(estimate, law(estimate.robot), path, simulator, **settings)
        return [path]

    return write


def samples(estimate: Estimate, folder: Path, untrusted: bool) -> list[Path]:
    models, label = [(estimate.identified_robot, law(estimate.robot))], label_of(estimate, untrusted=True)
    files = dynid.export.write_samples(models, folder / "samples", label=label, untrusted=untrusted)
    return [f.path for f in files]


def ranges(ending: str) -> Callable[[Estimate, Path, bool], list[Path]]:
    def write(estimate: Estimate, folder: Path, untrusted: bool) -> list[Path]:
        values = np.random.default_rng(0).normal([0.01, 0.3], [0.001, 0.02], (50, 2))
        draws = ParameterDraws(("Ia_joint1", "fc_joint1"), ("joint1",) * 2, ("Ia", "fc"), ("kg m2", "N m"), values)
        label = label_of(estimate, untrusted=True)
        dynid.export.write_ranges(draws, folder / f"ranges.{ending}", label=label, untrusted=untrusted)
        return [folder / f"ranges.{ending}"]

    return write


FORMATS: dict[str, Callable[[Estimate, Path, bool], list[Path]]] = {
    **{name: model(name) for name in ("urdf", "xml", "sdf", "yaml", "json", "toml")},
    **{f"{name} template": model(name, template=True) for name in ("urdf", "xml", "sdf")},
    **{language: code(language) for language in ("c", "python", "julia", "matlab", "casadi", "torch", "jax")},
    **{simulator: actuators(simulator) for simulator in simulator_names()},
    "mujoco template": actuators("mujoco", ".xml"),
    "gazebo template": actuators("gazebo", ".urdf"),
    "ros2_control template": actuators("ros2_control", ".urdf"),
    "samples": samples,
    **{f"ranges {ending}": ranges(ending) for ending in ("json", "toml", "csv")},
}


def said(path: Path) -> str:
    """What a file says to a person: its text, read by a parser of its format, without line ends and comment signs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".xml", ".urdf", ".sdf"):
        root = ET.fromstring(text, ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
        first = "".join(re.findall(r"\A(?:<\?.*?\?>)?\s*<!--(.*?)-->", text, re.DOTALL))  # before the root
        text = "\n".join([first, *(c.text or "" for c in root.iter() if c.tag is ET.Comment)])
    elif path.suffix == ".json":
        text = "\n".join(words(json.loads(text)))
    elif path.suffix == ".toml":
        text = "\n".join(words(tomllib.loads(text)))
    elif path.suffix == ".yaml":
        assert yaml.safe_load(text)
    elif path.suffix == ".py":
        ast.parse(text)
    return flat(text)


def words(data: object) -> list[str]:
    """All text in plain data, with its keys."""
    if isinstance(data, dict):
        return [f"{k}: {word}" for k, v in data.items() for word in words(v)]
    return [word for x in data for word in words(x)] if isinstance(data, list) else [str(data)]


def flat(text: str) -> str:
    return re.sub(r"[\s#*%]+", " ", text)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("grade", GRADES)
def test_every_file_says_it(plain: Estimate, tmp_path: Path, form: str, grade: Grade) -> None:
    estimate = judged(plain, grade)
    paths = FORMATS[form](estimate, tmp_path, True)
    assert paths
    for path in paths:
        text = said(path)
        assert f"verdict: {grade}" in text
        assert not any(f"verdict: {other}" in text for other in GRADES if other != grade)
        assert (flat(REASON) in text) == (grade != "not assessed") and "an old reason" not in text
        said_so = "checked on data that were not used for the fit" in text or "checked: True" in text
        assert said_so == (grade != "not assessed") and "not checked on" not in text
        assert DOMAIN in text
        label = label_of(estimate, untrusted=True)
        assert label is not None and len(label.bodies) == 2
        assert all(flat(body) in text for body in label.bodies.values())


@pytest.mark.parametrize("form", FORMATS)
def test_do_not_use_is_not_written(plain: Estimate, tmp_path: Path, form: str) -> None:
    with pytest.raises(DataError, match=f"not written, because the verdict is 'do not use': {REASON}; untrusted=True"):
        FORMATS[form](judged(plain, "do not use"), tmp_path, False)
    left = [p for p in tmp_path.rglob("*") if p.is_file() and not p.name.startswith("own")]
    assert not left


@pytest.mark.parametrize("form", [f for f in FORMATS if f != "samples"])
def test_hostile_words_stay_in_comments(plain: Estimate, tmp_path: Path, form: str) -> None:
    """Names, reasons and sentences of any letters break no file, and none of their letters becomes content."""
    names = {old: f"{old} {HOSTILE.replace(chr(0), '')}" for old in ("link1", "link2")}
    robot = replace(plain.robot, links=tuple(replace(x, name=names.get(x.name, x.name)) for x in plain.robot.links))
    estimate = replace(plain, base=replace(plain.base, robot=robot))
    estimate = judged(estimate, "use with care", f"broken {HOSTILE} reason", f"broken {HOSTILE} domain")
    if "template" in form:  # a template is matched by its names, which is not what is tried here
        estimate = judged(plain, "use with care", f"broken {HOSTILE} reason", f"broken {HOSTILE} domain")
    for path in FORMATS[form](estimate, tmp_path, False):
        assert "verdict: use with care" in said(path) and "broken" in said(path)
        content = path.read_text(encoding="utf-8")
        if path.suffix == ".h":
            assert "broken" not in re.sub(r"/\*.*?\*/", "", content, flags=re.DOTALL)
        if path.suffix == ".py":
            strings = [n.value for n in ast.walk(ast.parse(content)) if isinstance(n, ast.Constant)]
            assert not any("broken" in str(x) for x in strings[1:])  # the first is the docstring
        if path.suffix == ".m":
            assert all("broken" not in re.sub("%.*|'[^']*'", "", line) for line in content.splitlines())
        if path.suffix == ".jl":
            assert all("broken" not in re.sub('#.*|"[^"]*"', "", line) for line in content.splitlines())
        if path.suffix in (".yaml", ".tex"):
            assert all("broken" not in re.sub("#.*", "", line) for line in re.split("[\n\r\u2028]", content))
        if path.suffix == ".casadi":
            import casadi as ca

            assert ca.Function.load(str(path)).name().startswith("made_")


def test_robots_say_nothing(plain: Estimate, tmp_path: Path) -> None:
    robot = plain.identified_robot
    for name in ("arm.urdf", "arm.json", "arm.yaml", "arm.xml"):
        assert not any("verdict" in w or "assessed" in w for w in dynid.export.write(robot, tmp_path / name))
        assert "verdict" not in (tmp_path / name).read_text()
    assert not dynid.generate_code(robot).warnings
    text, _ = dynid.export.actuator_text(robot, law(robot), "mujoco")
    assert "verdict" not in text


# -- what is told ----------------------------------------------------------------------------------------


def test_one_sentence_is_told(plain: Estimate, tmp_path: Path) -> None:
    """Of a trusted estimate nothing, else the verdict with its first reason."""
    told = {grade: dynid.export.write(judged(plain, grade), tmp_path / "a.json", untrusted=True) for grade in GRADES}
    assert told["trusted"] == []
    assert told["use with care"] == [f"the verdict on this estimate is 'use with care': {REASON}"]
    assert told["do not use"] == [f"the verdict on this estimate is 'do not use': {REASON}"]
    assert len(told["not assessed"]) == 1 and "not assessed" in told["not assessed"][0]
    for grade in GRADES:
        estimate = judged(plain, grade)
        made = dynid.generate_code(estimate, ("gravity_torque",), untrusted=True)
        file = dynid.export.write_actuators(estimate, law(plain.robot), tmp_path / "a.py", "drake", untrusted=True)
        assert list(made.warnings) == told[grade] == list(file.warnings)


@pytest.mark.parametrize(
    "options",
    [("-o", "a.urdf"), ("-o", "a.c"), ("-o", "a.tex"), ("-o", "a.xml", "--simulator", "mujoco", "--law", "pd:9,1")],
)
def test_the_command_line_refuses_and_tells(plain: Estimate, tmp_path: Path, options: tuple[str, ...]) -> None:
    if options[1] == "a.tex" and importlib.util.find_spec("sympy") is None:
        pytest.skip("equations need SymPy")
    output = tmp_path / options[1]

    def run(grade: Grade, *more: str) -> tuple[int, str]:
        judged(plain, grade).save(tmp_path / "estimate.json")
        words = ["export", str(tmp_path / "estimate.json"), "-o", str(output), *options[2:], *more]
        done = CliRunner().invoke(app, words)
        return done.exit_code, f"{done.stderr}{done.exception or ''}"

    code, said_to_user = run("do not use")
    assert code == 1 and "--untrusted writes it" in said_to_user and not output.exists()
    code, said_to_user = run("do not use", "--untrusted")
    assert code == 0 and output.exists()
    expected: dict[Grade, str] = {"use with care": f"'use with care': {REASON}", "not assessed": "was not assessed"}
    for grade, word in expected.items():
        code, said_to_user = run(grade)
        assert code == 0 and sum(word in line for line in said_to_user.splitlines()) == 1
        assert f"verdict: {grade}" in output.with_suffix(".h" if output.suffix == ".c" else output.suffix).read_text()
    code, said_to_user = run("trusted")
    assert code == 0 and "verdict" not in said_to_user


# -- the estimate carries it -----------------------------------------------------------------------------


@pytest.mark.parametrize("grade", GRADES)
def test_a_saved_estimate_keeps_it(plain: Estimate, tmp_path: Path, grade: Grade) -> None:
    estimate = judged(plain, grade)
    estimate.save(tmp_path / "estimate.json")
    assert Estimate.load(tmp_path / "estimate.json").judgement == estimate.judgement
    data = json.loads((tmp_path / "estimate.json").read_text())
    data["judgement"] = {"grade": "perfect", "reasons": [], "checked": True}
    (tmp_path / "estimate.json").write_text(json.dumps(data))
    with expect_error(DamagedFile):
        Estimate.load(tmp_path / "estimate.json")


def test_an_assessment_gives_it(plain: Estimate) -> None:
    robot = plain.robot
    unseen = record(robot, (5,), noise=0.02, samples=400)
    with_motion, without = dynid.assess(plain, unseen), dynid.assess(plain)
    assert with_motion.judgement() == Judgement(with_motion.verdict, with_motion.reasons[:3], True)
    assert without.judgement().grade == "use with care" and not without.judgement().checked
    repeated = dynid.assess(plain, record(robot, noise=0.02, samples=400))
    assert not repeated.judgement().checked  # the fitted motion again


def test_without_unseen_motion_a_verdict_gets_no_better() -> None:
    """Assessing again with fewer data does not launder an estimate."""
    bad, care, good = (Judgement(g, ("why",), True) for g in ("do not use", "use with care", "trusted"))
    blind = replace(care, checked=False)
    assert blind.after(bad) is bad and blind.after(care) is care
    assert blind.after(good) is blind and blind.after(None) is blind and blind.after(Judgement()) is blind
    assert good.after(bad) is good and bad.after(good) is bad


def test_the_commands_that_assess_store_it(plain: Estimate, tmp_path: Path) -> None:
    """`identify` and `report` leave the verdict in the estimate; a model is written once the verdict is known."""
    robot, saved = plain.robot, tmp_path / "estimate.json"
    dynid.export.write(robot, tmp_path / "arm.urdf")
    for name, seed in (("fitted", 0), ("unseen", 5)):
        record(robot, (seed,), noise=0.02, samples=400).to_csv(tmp_path / f"{name}.csv")

    def run(*words: object) -> tuple[int, str]:
        done = CliRunner().invoke(app, [str(word) for word in words])
        return done.exit_code, f"{done.stdout}{done.stderr}{done.exception or ''}"

    start = ("identify", tmp_path / "arm.urdf", tmp_path / "fitted.csv", "--method", "feasible", "--cutoff", "none")
    identify = (*start, "--friction", "viscous+coulomb")
    code, _ = run(*identify, "-o", saved, "--report", "none")
    assert code == 0 and Estimate.load(saved).judgement is None
    code, _ = run("report", saved, tmp_path / "fitted.csv", "-o", tmp_path / "first.html")
    first = Estimate.load(saved).judgement
    assert code == 0 and first is not None and first.grade == "use with care" and not first.checked
    made = saved.stat().st_mtime_ns
    code, _ = run(
        "report", saved, tmp_path / "fitted.csv", "--validate", tmp_path / "unseen.csv", "-o", tmp_path / "a.html"
    )
    second = Estimate.load(saved).judgement
    assert code == 0 and second is not None and second.checked
    assert saved.stat().st_mtime_ns == made  # the first report belongs to it still
    code, _ = run(*identify, "--validate", tmp_path / "unseen.csv", "-o", saved)
    assert code == 0 and Estimate.load(saved).judgement == second
    bad = tmp_path / "bad.csv"
    shuffled = record(robot, (5,), samples=400)
    wrong = tuple(replace(run, torque=-1.0 * run.torque) for run in shuffled.runs if run.torque is not None)
    replace(shuffled, runs=wrong).to_csv(bad)
    code, text = run(*identify, "--validate", bad, "-o", tmp_path / "out.urdf", "--report", tmp_path / "b.html")
    assert code == 1 and "verdict: do not use" in text and "--untrusted writes it" in text
    assert not (tmp_path / "out.urdf").exists()
    code, text = run(*identify, "--validate", bad, "-o", tmp_path / "out.urdf", "--untrusted")
    assert code == 0 and "verdict: do not use" in (tmp_path / "out.urdf").read_text()


# -- what decided a body ---------------------------------------------------------------------------------


def test_slopes_of_bodies_are_derivatives() -> None:
    rng = np.random.default_rng(3)
    pi = np.concatenate([[2.0], rng.normal(size=9)])
    value, slopes = body_values_and_slopes(pi)
    mass, centre, tensor = dynid.inertia.inertia_to_com(pi)
    np.testing.assert_allclose(value, [mass, *centre, *np.diag(tensor)], rtol=1e-12)
    step = 1e-6
    for j, direction in enumerate(np.eye(10)):
        up, down = (body_values_and_slopes(pi + s * step * direction)[0] for s in (1, -1))
        np.testing.assert_allclose((up - down) / (2 * step), slopes[:, j], atol=1e-8)  # rounding over the step
    assert len(body_values_and_slopes(np.zeros(10))[0]) == 1


def origins(estimate: Estimate) -> dict[tuple[str, str], tuple[Decided, ...]]:
    return {(x.link, x.what): x.decided for x in body_origins(estimate)}


def test_a_body_that_moved_is_not_left_to_the_prior(plain: Estimate) -> None:
    """A mass of nine times its prior that the data do not show alone is part of a combination."""
    robot, start = plain.robot, plain.robot.parameter_names.index("m_link1")
    blind = replace(
        plain, covariance=1e9 * np.eye(len(plain.beta)), standard=robot.parameters, standard_covariance=None
    )
    assert set(origins(blind)["link1", "mass"]) == {Decided.PRIOR}
    for factor in (9.0, 1 / 9.0):
        standard = robot.parameters.copy()
        standard[start : start + 10] *= factor
        moved = replace(blind, standard=standard)
        assert set(origins(moved)["link1", "mass"]) == {Decided.COMBINATION}
        assert set(origins(moved)["link2", "mass"]) == {Decided.PRIOR}
        before, now = robot.parameters[start], standard[start]
        sentence = next(x.sentence for x in body_origins(moved) if (x.link, x.what) == ("link1", "mass"))
        assert sentence.startswith(f"mass {now:.3g} kg, a priori {before:.3g} +- ")
        assert sentence.endswith("decided by data and other bodies together")


def test_data_decide_where_little_of_the_prior_is_left(plain: Estimate) -> None:
    sharp = replace(
        plain, standard_covariance=1e-12 * np.eye(plain.parameters.size), covariance=1e-12 * plain.covariance
    )
    base = [n for n, kind in plain.base.classes.items() if kind == "identifiable" and n.startswith("m_")]
    found = origins(sharp)
    assert all(found[name.removeprefix("m_"), "mass"] == (Decided.DATA,) for name in base)
    # A method without a prior determines only what is identifiable alone.
    alone = origins(replace(sharp, standard=None, standard_covariance=None))
    hidden = [n for n, kind in plain.base.classes.items() if kind != "identifiable" and n.startswith("m_")]
    assert hidden and all(Decided.DATA not in alone[name.removeprefix("m_"), "mass"] for name in hidden)


def test_walls_are_told(plain: Estimate) -> None:
    walls = (
        Wall("link1", "mass", 24.0, 10.8, 1.0),
        Wall("link2", "gyration radius", 0.02, 0.02, 1.0),
        Wall("", "total mass", 12, 9, 1.0),
    )
    estimate = replace(plain, walls=walls)
    found = origins(estimate)
    assert found["link1", "mass"] == (Decided.BOX,) and set(found["link2", "inertia"]) == {Decided.BOX}
    assert Decided.BOX not in (*found["link2", "mass"], *found["link1", "inertia"])
    label = label_of(estimate)
    assert label is not None
    text = "\n".join(label.lines())
    assert "decided by the box, at its limit of 10.8 kg." in text
    assert "at its limit of 0.02 m of the gyration radius." in text
    assert "Total mass at its limit of 9 kg, the data want 12 kg." in text


def test_what_the_prior_of_auto_knows_is_not_said_of_the_data() -> None:
    """The last joint moves a little: no torque shows the masses of the others, whatever their prior knew."""
    robot = dynid.load_robot("rv2sq").with_drives("none", rotor_inertia=False)
    t = np.arange(4000) / 1000.0
    q = np.zeros((len(t), robot.n))
    q[:, -1] = 0.3 * np.sin(2 * np.pi * t)
    v = np.gradient(q, t, axis=0)
    torque = dynid.inverse_dynamics(robot, q, v, np.gradient(v, t, axis=0))
    torque += 0.05 * np.random.default_rng(0).normal(size=q.shape)
    recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))
    found = body_origins(dynid.identify(robot, recording))
    masses = [x for x in found if x.what == "mass"]
    assert not any(Decided.DATA in x.decided for x in masses)
    assert all(0.3 * x.prior[0] < x.prior_std[0] < 0.5 * x.prior[0] for x in masses)


def test_an_empty_label_is_one_of_an_estimate_that_was_not_assessed() -> None:
    assert Label().lines() == ["verdict: not assessed"]
