"""Base parameters: counts, groupings, the bijection, and agreement of independent methods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
import dynid.robot
from dynid.errors import InvalidShape, NotApplicable, UnknownName
from dynid.parameters.base import random_states
from tests.support.errors import Error, expect_error
from tests.support.random_robots import random_robot
from tests.support.structured_robots import structured_robot


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 7), st.sampled_from(["fixed", "floating"]))
def test_sampled_and_recursive_methods_agree(seed: int, joints: int, base: str) -> None:
    """Two unrelated derivations give the same kept columns and the same combinations."""
    robot = structured_robot(seed, joints, base)
    sampled = dynid.base_parameters(robot)
    exact = dynid.base_parameters(robot, method="recursive")
    assert sampled.kept == exact.kept
    assert sampled.without_effect == exact.without_effect
    # Both solve well-conditioned systems of the size of the robot in double precision.
    np.testing.assert_allclose(sampled.matrix, exact.matrix, atol=1e-8)


@pytest.mark.parametrize("name", sorted(dynid.builtin_robots()))
def test_all_three_methods_span_the_same_space(name: str) -> None:
    """Pivoting chooses other representatives, never other information."""
    robot = dynid.load_robot(name)
    reference = dynid.base_parameters(robot)
    for method in ("pivoted",) if robot.loops else ("pivoted", "recursive"):
        other = dynid.base_parameters(robot, method=method)
        assert other.count == reference.count
        both = np.vstack([reference.matrix, other.matrix])
        singular = np.linalg.svd(both, compute_uv=False)
        assert singular[reference.count] < 1e-10 * singular[0]


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from(["fixed", "floating", "instrumented"]))
def test_base_regressor_predicts_every_torque(seed: int, joints: int, base: str) -> None:
    """Y_b beta equals inverse dynamics on motion that played no part in the structure."""
    robot = random_robot(seed, joints, base=base, drives=True)
    groups = dynid.base_parameters(robot)
    q, v, a = random_states(robot, 6, seed=99)
    torque = dynid.inverse_dynamics(robot, q, v, a)
    predicted = groups.regressor(q, v, a) @ groups.values()
    # The combinations are solved to about 1e-12 of the torque.
    np.testing.assert_allclose(predicted, torque, atol=1e-9 * np.abs(torque).max())


def test_bijection_between_standard_and_base_parameters() -> None:
    """pi -> (beta, dependent) -> pi is the identity, and any dependent part keeps the torques."""
    robot = dynid.load_robot("wam7")
    groups = dynid.base_parameters(robot)
    rng = np.random.default_rng(1)
    pi = rng.normal(size=len(robot.layout))
    beta, dependent = groups.split(pi)
    np.testing.assert_allclose(groups.join(beta, dependent), pi, atol=1e-12)
    other = groups.join(beta, rng.normal(size=dependent.size))
    state = random_states(robot, 5, seed=2)
    np.testing.assert_allclose(
        dynid.inverse_dynamics(robot, *state, pi), dynid.inverse_dynamics(robot, *state, other), atol=1e-9
    )


def test_gap_in_the_spectrum_is_reported() -> None:
    """The rank is decided across many orders of magnitude, and the user sees how many."""
    groups = dynid.base_parameters(dynid.load_robot("tx40"))
    assert groups.gap > 1e10
    assert groups.singular_values[groups.count - 1] / groups.singular_values[groups.count] == groups.gap


def test_classes_of_the_tx40() -> None:
    """Alone, in combination, not at all: one known parameter of each kind."""
    classes = dynid.base_parameters(dynid.load_robot("tx40")).classes
    assert classes["fv_joint1"] == "identifiable"
    assert classes["Izz_link1"] == "combined" and classes["m_link6"] == "combined"
    assert classes["m_link1"] == "unidentifiable" and classes["mz_link2"] == "unidentifiable"
    assert len(classes) == 87


def test_classes_mean_what_they_say() -> None:
    """A change of an identifiable parameter cannot be hidden; of an unidentifiable one, nothing is seen."""
    robot = random_robot(3, 4, drives=True)
    groups = dynid.base_parameters(robot)
    # Every invisible change of parameters moves the dependent ones and is compensated in the kept ones.
    invisible = groups.join(np.zeros((len(groups.dependent), groups.count)), np.eye(len(groups.dependent)))
    for i, name in enumerate(robot.parameter_names):
        hidden = np.abs(invisible[:, i]).max() > 1e-9
        assert (groups.classes[name] == "identifiable") == (not hidden)


def test_channels_choose_the_measured_rows() -> None:
    """Fewer measured torques show fewer combinations; a wildcard and a group name work."""
    robot = dynid.load_robot("iiwa14")
    everything = dynid.base_parameters(robot).count
    first = dynid.base_parameters(robot, channels=["joint1"])
    last = dynid.base_parameters(robot, channels="joint7")
    assert last.count < first.count < everything
    assert first.channels == ("joint1",)
    assert dynid.base_parameters(robot, channels=["joint*"]).count == everything
    assert dynid.base_parameters(robot, channels="torque").count == everything
    # Only link 7 acts on joint 7, through at most its own block and friction.
    assert all(robot.layout[j].name.endswith("7") for j in last.kept)
    q, v, a = random_states(robot, 4, seed=0)
    assert last.regressor(q, v, a).shape == (4, 1, last.count)


def test_floating_base_with_wrench_alone_shows_all_link_inertias_but_no_friction() -> None:
    """Six base rows hold the dynamics of the whole tree, and none of its internal friction."""
    robot = random_robot(5, 4, base="floating").with_drives("viscous+coulomb+offset", rotor_inertia=True)
    wrench = dynid.base_parameters(robot, channels="wrench")
    both = dynid.base_parameters(robot)
    drives = {p.name for p in robot.layout if not p.inertial}
    assert {robot.parameter_names[j] for j in wrench.without_effect} == drives
    assert wrench.count == both.count - len(drives)


def test_order_decides_the_representatives() -> None:
    """Parameters named first are kept where they can be; the default order is the textbooks'."""
    robot = dynid.load_robot("tx40")
    default = dynid.base_parameters(robot)
    chosen = dynid.base_parameters(robot, order=["m_link6", "Iyy_link3"])
    kept = [robot.parameter_names[j] for j in chosen.kept]
    assert kept[:2] == ["m_link6", "Iyy_link3"]
    assert robot.parameter_names.index("m_link6") not in default.kept
    assert default.count == chosen.count
    wam = dynid.load_robot("wam7")
    # Standard frames sit at the far end of a link: its mass, scanned first, stands for what the tensor would.
    layout = [wam.parameter_names[j] for j in dynid.base_parameters(wam, order="layout").kept]
    textbook = [wam.parameter_names[j] for j in dynid.base_parameters(wam).kept]
    assert "m_link3" in layout and "m_link3" not in textbook
    assert len(layout) == len(textbook)


def test_expressions_read_like_the_books() -> None:
    """Signs, coefficients and the R of regrouped names are printed as expected."""
    groups = dynid.base_parameters(dynid.load_robot("twolink", friction="none", rotor_inertia=False))
    assert groups.expressions == ("Izz_1 + 2 mx_1 + m_1 + m_2", "Izz_2 - m_2", "mx_2 + m_2", "my_2")
    assert groups.names == ("Izz_link1R", "Izz_link2R", "mx_link2R", "my_link2")


def test_same_seed_same_answer_and_other_seed_same_structure() -> None:
    """Structure does not depend on the random samples."""
    robot = random_robot(8, 5, drives=True)
    one, same, other = (dynid.base_parameters(robot, seed=s) for s in (0, 0, 7))
    assert np.array_equal(one.matrix, same.matrix)
    assert one.kept == other.kept
    np.testing.assert_allclose(one.matrix, other.matrix, atol=1e-8)


def test_gravity_direction_changes_the_base_set() -> None:
    """A leaning robot shows parameters of its first link that an upright one cannot."""
    robot = dynid.load_robot("iiwa14")
    upright, hanging = dynid.base_parameters(robot), dynid.base_parameters(robot.with_gravity((0, 0, 9.81)))
    leaning = dynid.base_parameters(robot.with_gravity((9.81, 0, 0)))
    assert upright.count == hanging.count == 57
    assert leaning.count == 59
    assert leaning.classes["mx_link1"] != "unidentifiable" == upright.classes["mx_link1"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"method": "magic"}, (UnknownName, "method")),
        ({"order": "alphabetical"}, (UnknownName, "order")),
        ({"order": ["m_link99"]}, (UnknownName, "order")),
        ({"channels": "joint9"}, (UnknownName, "channels")),
        ({"channels": "wrench"}, (NotApplicable, "base")),
        ({"channels": ["joint1"], "method": "recursive"}, (NotApplicable, "method")),
    ],
)
def test_bad_options_name_the_culprit(options: dict[str, object], error: Error) -> None:
    """One line that says what is wrong."""
    with expect_error(*error) as caught:
        dynid.base_parameters(dynid.load_robot("tx40"), **options)
    assert "\n" not in str(caught.value)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from(["fixed", "floating"]))
def test_sampled_and_recursive_methods_agree_on_mimic_joints(seed: int, joints: int, base: str) -> None:
    """The groupings of the freed joints are exact; the coupling adds the same ones as sampling does."""
    robot = random_robot(seed, joints, mimics=1 + seed % (joints - 1), base=base, drives=True)
    sampled = dynid.base_parameters(robot)
    exact = dynid.base_parameters(robot, method="recursive")
    assert sampled.kept == exact.kept
    q, v, a = random_states(robot, 6, seed=seed + 1)
    torque = dynid.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(exact.regressor(q, v, a) @ exact.values(), torque, atol=1e-8 * np.abs(torque).max())


def test_recursive_method_says_what_it_cannot_do() -> None:
    """Custom columns and measured base wrenches are refused by name."""
    with expect_error(NotApplicable, "method"):
        dynid.base_parameters(dynid.load_robot("box2", base="instrumented"), method="recursive")
    robot = dynid.load_robot("twolink")
    robot = robot.with_terms(robot.custom_term("stribeck", 0, lambda q, v, a: np.exp(-(v**2)) * np.sign(v)))
    with expect_error(NotApplicable, "method"):
        dynid.base_parameters(robot, method="recursive")
    assert dynid.base_parameters(robot).classes["stribeck_joint1"] == "identifiable"


def test_wrong_sized_vectors_are_refused() -> None:
    """Values, split and join check what they are given."""
    groups = dynid.base_parameters(dynid.load_robot("twolink"))
    with expect_error(InvalidShape, "pi"):
        groups.values(np.zeros(3))
    with expect_error(InvalidShape, "beta"):
        groups.join(np.zeros(3))
    with expect_error(InvalidShape, "rest"):
        groups.join(np.zeros(groups.count), np.zeros(2))


@pytest.mark.parametrize("name", ["puma560", "tx40", "iiwa14"])
def test_columns_of_a_link_are_felt_up_to_its_own_joint(name: str) -> None:
    """In the base regressor of a chain: the last torque that depends on a column is that of its link's joint."""
    robot = dynid.load_robot(name)
    base = dynid.base_parameters(robot)
    W = np.abs(base.regressor(*random_states(robot, 50, 0))).max(axis=0)
    last = [int(np.flatnonzero(column > 1e-9 * column.max())[-1]) for column in W.T]
    assert sorted(i for columns in base.link_columns.values() for i in columns) == list(range(base.count))
    for number, link in enumerate(robot.links[1:]):
        assert base.link_columns[link.name] == tuple(i for i, row in enumerate(last) if row == number)


def test_a_fixed_base_has_no_columns() -> None:
    """The base of a fixed arm is felt nowhere."""
    robot = dynid.load_robot("twolink").with_drives("none", rotor_inertia=False)
    columns = dynid.base_parameters(robot).link_columns
    assert robot.links[0].name not in columns and list(columns) == [link.name for link in robot.links[1:]]
