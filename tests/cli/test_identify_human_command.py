"""A person on a force plate, on the command line: from files to a possible body."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid as package
from dynid import Recording, Robot, Run
from dynid.export.urdf import write_urdf
from tests.support.commands import dynid
from tests.support.person import on_the_ground, swaying, write_plate

Array = NDArray[np.float64]

WEIGHT, HEIGHT = 94.0, 1.8
PERSON = ("--prior", "anthropometric", "--height", str(HEIGHT), "--weight", str(WEIGHT))
PLAIN = ("--cutoff", "none", "--decimate", "none")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A skeleton, motion of a person who differs from the table, and plates at 100 and 400 Hz."""
    folder = tmp_path_factory.mktemp("person")
    table = package.human.human_model("male", HEIGHT, WEIGHT)
    paths = {"robot": folder / "human.urdf"}
    write_urdf(table, paths["robot"])
    truth = heavier_legs(package.load_robot(paths["robot"], base="floating"))
    for name, seed in (("one", 1), ("two", 2)):
        motion = swaying(truth, 100.0, seed)
        paths[name] = folder / f"{name}.csv"
        run = Run(motion.t, motion.q[:, 7:], base=motion.q[:, :7])
        Recording(truth.coordinates, (run,)).to_csv(paths[name])
        for rate in (100, 400):
            paths[f"{name}{rate}"] = folder / f"{name}_plate{rate}.csv"
            write_plate(paths[f"{name}{rate}"], rate, on_the_ground(truth, swaying(truth, rate, seed)))
    return paths


def heavier_legs(table: Robot) -> Robot:
    """The same weight, a tenth more of it in the legs and less in the trunk, and a heavier left arm."""
    factor = {"thigh": 1.1, "shank": 1.1, "left_upper_arm": 1.2}
    links = [
        replace(x, inertia=x.inertia * next((f for part, f in factor.items() if part in x.name), 1.0))
        for x in table.links
    ]
    more = sum(x.inertia[0] for x in links) - WEIGHT
    trunk = next(k for k, x in enumerate(links) if x.name == "middle_trunk")
    links[trunk] = replace(links[trunk], inertia=links[trunk].inertia * (1 - more / links[trunk].inertia[0]))
    return replace(table, links=tuple(links))


def identify(files: dict[str, Path], *more: str, plate: str = "one100") -> CompletedProcess[str]:
    return dynid("human", "identify", str(files["robot"]), str(files["one"]), "--wrench", str(files[plate]), *more)


def test_a_person_from_files(files: dict[str, Path], tmp_path: Path) -> None:
    """Weight kept, every body possible, and unseen motion predicted three times better than by the table.

    The table is off by 1.8 N, which is little more than the noise of the plate.
    """
    saved = tmp_path / "person.json"
    unseen = ("--validate", str(files["two"]), "--validate-wrench", str(files["two100"]))
    done = identify(files, *PERSON, *PLAIN, "--prior-weight", "1", *unseen, "--json", "-o", str(saved))
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["method"] == "feasible" and page["known_masses"]["total"] == WEIGHT
    skeleton = package.load_robot(files["robot"], base="floating")
    prior = package.human.with_anthropometric_prior(skeleton, "male", WEIGHT, height=HEIGHT)
    estimate = package.Estimate.load(saved, prior)
    assert estimate.standard is not None
    masses = [x for x, p in zip(estimate.standard, prior.layout, strict=True) if p.symbol == "m"]
    assert sum(masses) == pytest.approx(WEIGHT, abs=1e-6)
    assert (
        package.feasibility.feasible_set(prior, package.feasibility.constraints.Inertia(margin=0.0)).violations(
            estimate.standard
        )
        == []
    )
    motion = swaying(prior, 100.0, 2)
    load = {
        name: package.inverse_dynamics(prior, motion.q, motion.v, motion.a, parameters)[:, :6]
        for name, parameters in (("table", prior.parameters), ("found", estimate.standard))
    }
    person = heavier_legs(skeleton)
    true = package.inverse_dynamics(person, motion.q, motion.v, motion.a)
    error = {name: np.linalg.norm(x - true[:, :6]) for name, x in load.items()}
    assert error["found"] < error["table"] / 3
    assert set(page["validation"]) == set(estimate.base.channels)


def test_entropic_and_symmetric(files: dict[str, Path], tmp_path: Path) -> None:
    """Left and right come out alike, in the entropic metric, and the weight is what the plate carries."""
    out = tmp_path / "found.urdf"
    options = ("--prior", "anthropometric", "--metric", "entropic", "--symmetry", "--prior-weight", "1")
    done = identify(files, *options, *PLAIN, "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "verdict: " in done.stdout
    found = package.load_robot(out, base="floating")
    masses = {link.name: link.inertia[0] for link in found.links}
    assert masses["left_upper_arm"] == pytest.approx(masses["right_upper_arm"], rel=1e-5)
    assert sum(masses.values()) == pytest.approx(WEIGHT, rel=0.01)


def test_a_faster_plate_is_brought_to_the_cameras(files: dict[str, Path]) -> None:
    """400 Hz beside 100 Hz give what one clock gives, within the noise."""
    slow, fast = (
        json.loads(identify(files, *PERSON, *PLAIN, "--prior-weight", "1", "--json", plate=plate).stdout)
        for plate in ("one100", "one400")
    )
    a, b = (np.array([x["value"] for x in page["base_parameters"]]) for page in (slow, fast))
    variance = [np.array([x["std"] for x in page["base_parameters"]]) ** 2 for page in (slow, fast)]
    assert np.mean(np.abs(a - b) < 5 * np.sqrt(sum(variance))) > 0.95


@pytest.mark.slow
def test_an_offset_of_the_plate_is_taken_off(files: dict[str, Path], tmp_path: Path) -> None:
    """By a file of the unloaded plate, and by the seconds after the motion in which nobody stands on it."""
    offset = np.array([-4.0, 2.0, 30.0, 1.0, -2.0, 13.0])
    wrench = np.loadtxt(files["one100"], delimiter=",", skiprows=1)[:, 1:]
    empty = 0.05 * np.random.default_rng(1).normal(size=(200, 6))
    paths = dict(files)
    for name, rows in (("moved", wrench + offset), ("longer", np.vstack([wrench, empty]) + offset), ("empty", empty)):
        paths[name] = tmp_path / f"{name}.csv"
        write_plate(paths[name], 100.0, rows + (offset if name == "empty" else 0.0))
    options = (*PERSON, *PLAIN, "--prior-weight", "1", "--json")
    right, wrong = identify(paths, *options), identify(paths, *options, plate="moved")
    by_file = identify(paths, *options, "--zero-plate", str(paths["empty"]), plate="moved")
    by_time = identify(paths, *options, "--zero-plate", "10:12", plate="longer")
    zero = empty.mean(axis=0) + offset
    assert f"subtracted from moved.csv: {zero[0]:.3g}, {zero[1]:.3g}, {zero[2]:.3g} N" in by_file.stderr

    def told(done: CompletedProcess[str], what: str = "value") -> Array:
        return np.array([x[what] for x in json.loads(done.stdout)["base_parameters"]])

    values, bad, sigma = [told(x) for x in (right, by_file, by_time)], told(wrong), told(right, "std")
    free = sigma > 0  # the weight is given
    # Two hundred quiet rows tell the zero to 0.004 N and N m, below what a thousand of 1 N tell of a mean.
    for found in values[1:]:
        assert np.abs((found - values[0])[free] / sigma[free]).max() < 3
    assert np.abs((bad - values[0])[free] / sigma[free]).max() > 30
    for given, words in (
        ("2:4", "N from 2 to 4 s of longer.csv"),
        ("20:30", "no samples from 20 to 30 s"),
        ("4:2", "not a time interval"),
        (str(paths["one100"]), "it is not unloaded"),
        (str(tmp_path / "none.csv"), "none.csv"),
    ):
        done = identify(paths, *options, "--zero-plate", given, plate="longer")
        assert done.returncode != 0 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
    alone = dynid("human", "identify", str(files["robot"]), str(files["one"]), "--zero-plate", "0:1")
    assert alone.returncode != 0 and "none is given" in alone.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--height", "1.8"), "give --prior anthropometric"),
        (("--prior", "cad"), "--prior 'cad' is unknown: use file or anthropometric"),
        ((*PERSON, "--sex", "robot"), "robot"),
        ((*PERSON, "--metric", "taxicab"), "--metric 'taxicab' is unknown"),
        ((*PERSON, "--method", "ols"), "for --method feasible, not 'ols'"),
        (("--prior", "anthropometric", "--weight", "9000"), "--weight must lie between"),
        ((*PERSON, "--rows", "100:900"), "cut both files beforehand"),
        ((*PERSON, "--wrench", "another.csv"), "2 plate files are given for 1 runs"),
    ],
)
def test_wrong_options_in_plain_words(files: dict[str, Path], options: tuple[str, ...], words: str) -> None:
    done = identify(files, *options)
    assert done.returncode != 0
    assert words in done.stderr and "Traceback" not in done.stderr


def test_wrong_plates_in_plain_words(files: dict[str, Path], tmp_path: Path) -> None:
    lines = files["one100"].read_text().splitlines()
    short, nameless, torn = tmp_path / "short.csv", tmp_path / "nameless.csv", tmp_path / "torn.csv"
    short.write_text("\n".join(lines[:500]))
    nameless.write_text("\n".join(["time,a,b,c,d,e,f", *lines[1:]]))
    torn.write_text("\n".join([*lines[:10], "0.09,1,2,nothing,4,5,6", *lines[11:]]))
    said = {
        short: "the plate must cover all of it",
        nameless: "the six columns fx, fy, fz, mx, my, mz",
        torn: "the wrench is not a number at line 11",
    }
    for path, words in said.items():
        done = identify({**files, "bad": path}, *PERSON, plate="bad")
        assert done.returncode != 0
        assert words in done.stderr and "Traceback" not in done.stderr
    warned = identify(files, "--prior", "anthropometric", "--weight", "80", *PLAIN, "--prior-weight", "1")
    assert "the plate carries 94.0 kg, --weight is 80 kg" in warned.stderr
