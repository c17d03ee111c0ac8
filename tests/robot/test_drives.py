"""Drives: every term is the function the documentation says, in whatever combination and order it is asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.errors import ModelError
from dynid.robot import Transmission, rooted_at
from dynid.robot.drives import DRIVE_SYMBOLS, FRICTION_TERMS
from tests.support.errors import expect_error
from tests.support.random_robots import VELOCITY
from tests.support.robot_files import Array, motion

EXACT = 1e-12  # sums of some forty terms of order one in double precision

COUPLING = np.array([[1.0, 0.0, 0.5], [0.0, -2.0, 1.0], [0.25, 1.5, -1.0]])


def three_joints() -> Robot:
    """Two hinges and a slide with bodies, without drives."""
    body = {"mass": 1.5, "com": [0.1, 0.2, -0.1], "tensor": [0.2, 0.01, 0.02, 0.3, 0.03, 0.25]}
    rows = [{"alpha": 0.4, "a": 0.3}, {"alpha": -0.8, "a": 0.2, "d": 0.1}, {"alpha": 1.0, "kind": "prismatic"}]
    return Robot.from_dh([{**row, "inertia": body} for row in rows], "modified")


def coupled() -> Robot:
    return three_joints().with_transmission(Transmission(("m1", "m2", "m3"), COUPLING, np.array([20.0, -30.0, 40.0])))


def subsets(symbols: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(symbols, k) for k in range(len(symbols) + 1)))


def documented(symbol: str, d: Array, rest: float, cross: bool, q: Array, v: Array, a: Array) -> Array:
    """Column (N, n) of one term on a shaft that turns with d: torque d f(d . motion), as `TermKind` describes f."""
    linear = {"Ia": a, "fv": v, "k": q}
    x = linear.get(symbol, v)
    s = x @ d
    f = {
        "Ia": s,
        "fv": s,
        "fvp": np.where(s > 0, s, 0),
        "fvn": np.where(s < 0, s, 0),
        "fc": np.sign(s),
        "fcp": np.where(s > 0, 1, 0),
        "fcn": np.where(s < 0, -1, 0),
        "fs": np.sign(s) * np.exp(-((s / VELOCITY["fs"]) ** 2)),
        "off": np.ones_like(s),
        "k": s - rest,
    }[symbol]
    column = f[:, None] * d
    if cross and symbol in linear:
        column -= x * d**2  # each joint's own part is left out
    return column


def check(robot: Robot, seed: int) -> None:
    """Every drive column is the documented one, and Y pi is the inverse dynamics."""
    q, v, a = motion(robot, seed)
    Y = dynid.regressor(robot, q, v, a)
    assert Y.shape[2] == len(robot.parameter_names)
    column = {name: k for k, name in enumerate(robot.parameter_names)}
    for t in robot.drives:
        expected = documented(t.symbol, t.direction, t.rest, t.cross_only, q, v, a)
        np.testing.assert_allclose(Y[:, :, column[t.name]], expected, atol=EXACT, err_msg=t.name)
    np.testing.assert_allclose(Y @ robot.parameters, dynid.inverse_dynamics(robot, q, v, a), atol=EXACT * 10)


@pytest.mark.slow
def test_every_combination_of_joint_terms() -> None:
    """All 1024 sets of joint-side terms, another one on each joint: no column depends on which others are there."""
    sets, robot = subsets(DRIVE_SYMBOLS), three_joints()
    rng = np.random.default_rng(0)
    for k in range(len(sets)):
        chosen = [sets[k], sets[-1 - k], sets[(7 * k) % len(sets)]]
        terms = [
            robot.joint_term(
                i, s, rng.uniform(0.1, 1), rest=rng.uniform(-1, 1) if s == "k" else 0.0, velocity=VELOCITY.get(s, 0.0)
            )
            for i, symbols in enumerate(chosen)
            for s in symbols
        ]
        check(robot.with_terms(*terms), seed=k)


@pytest.mark.slow
def test_every_combination_of_motor_terms() -> None:
    """All 1024 sets of motor-side terms through a full coupling matrix, whole or cross-only, beside joint terms."""
    sets, robot = subsets(DRIVE_SYMBOLS), coupled().with_drives("viscous+coulomb", rotor_inertia=True)
    rng = np.random.default_rng(1)
    for k in range(len(sets)):
        terms = [
            replace(
                robot.motor_term(
                    f"m{i + 1}", s, rng.uniform(0.1, 1), cross_only=(k + i) % 2 == 0, velocity=VELOCITY.get(s, 0.0)
                ),
                rest=rng.uniform(-1, 1) if s == "k" else 0.0,
            )
            for i, symbols in enumerate((sets[k], sets[-1 - k]))
            for s in symbols
        ]
        check(robot.with_terms(*terms), seed=k)


@pytest.mark.parametrize("rotor", [False, True])
def test_every_friction_law_gives_its_parameters_in_order(rotor: bool) -> None:
    """Words in any order give the block Ia, fv.., fc.., off behind the link's ten numbers."""
    order = ["Ia", "fv", "fvp", "fvn", "fc", "fcp", "fcn", "off"]
    for words in subsets(tuple(FRICTION_TERMS))[1:]:
        robot = three_joints().with_drives("+".join(reversed(words)), rotor_inertia=rotor)
        wanted = {s for word in words for s in FRICTION_TERMS[word]} | ({"Ia"} if rotor else set())
        block = [s for s in order if s in wanted]
        assert robot.parameter_names[10 : 10 + len(block)] == tuple(f"{s}_joint1" for s in block)
        assert len(robot.parameter_names) == 3 * (10 + len(block))


def test_layout_is_link_block_then_drive_block_base_to_tip() -> None:
    """Order, names, labels and units of the whole vector, custom and motor terms last in their joint's block."""
    robot = coupled().with_drives({"joint1": "offset+coulomb+viscous"}, rotor_inertia=["joint1", "joint3"])
    robot = robot.with_terms(
        robot.motor_term("m2", "fc"),
        robot.custom_term("backlash", "joint2", lambda q, v, a: np.zeros_like(q), unit="N m"),
        robot.joint_term("joint2", "k"),
        robot.motor_term("m2", "Ia"),
    )
    ten = ["m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]
    names = [f"{s}_link1" for s in ten] + ["Ia_joint1", "fv_joint1", "fc_joint1", "off_joint1"]
    names += [f"{s}_link2" for s in ten] + ["k_joint2", "backlash_joint2", "Ia_m2", "fc_m2"]
    names += [f"{s}_link3" for s in ten] + ["Ia_joint3"]
    assert list(robot.parameter_names) == names
    labels = [f"{s}_1" for s in ten] + ["Ia_1", "fv_1", "fc_1", "off_1"]
    labels += [f"{s}_2" for s in ten] + ["k_2", "backlash_2", "Iam_2", "fcm_2"]
    labels += [f"{s}_3" for s in ten] + ["Ia_3"]
    assert list(robot.parameter_labels) == labels
    unit = {p.name: p.unit for p in robot.layout}
    assert (unit["m_link1"], unit["mx_link1"], unit["Izz_link1"]) == ("kg", "kg m", "kg m2")
    assert (unit["fv_joint1"], unit["backlash_joint2"]) == ("N m s/rad", "N m")


def test_units_of_a_prismatic_joint_are_those_of_a_force() -> None:
    """The parameters of a shaft that translates: kg, N s/m, N and N/m, whichever variant of the robot holds them."""
    slide = {"Ia": "kg", "fv": "N s/m", "fvp": "N s/m", "fvn": "N s/m", "fc": "N", "fcp": "N", "fcn": "N"}
    slide |= {"fs": "N", "off": "N", "k": "N/m"}
    hinge = {"Ia": "kg m2", "fv": "N m s/rad", "fvp": "N m s/rad", "fvn": "N m s/rad", "fc": "N m", "fcp": "N m"}
    hinge |= {"fcn": "N m", "fs": "N m", "off": "N m", "k": "N m/rad"}
    robot = three_joints()
    robot = robot.with_terms(
        *(robot.joint_term(j, s, velocity=VELOCITY.get(s, 0.0)) for j in ("joint1", "joint3") for s in DRIVE_SYMBOLS)
    )
    for variant in (robot, robot.with_base("floating"), robot.locked({"joint2": 0.3}), rooted_at(robot, "link3")):
        unit = {p.name: p.unit for p in variant.layout}
        assert {s: unit[f"{s}_joint3"] for s in DRIVE_SYMBOLS} == slide
        assert {s: unit[f"{s}_joint1"] for s in DRIVE_SYMBOLS} == hinge
        assert {t.name: t.unit for t in variant.drives} == {t.name: unit[t.name] for t in variant.drives}
        group = {p.name: p.group for p in variant.layout}
        assert (
            {s: group[f"{s}_joint3"] for s in DRIVE_SYMBOLS}
            == {s: group[f"{s}_joint1"] for s in DRIVE_SYMBOLS}
            == hinge
        )
        force = {c: "N" if c in ("joint3", "base.fx", "base.fy", "base.fz") else "N m" for c in variant.channels}
        assert variant.channel_units == force


def test_units_of_a_motor_that_drives_prismatic_joints_only() -> None:
    """Motor-side parameters are seen through the coupling: a force where every coupled joint translates."""
    coupling = np.array([[1.0, 0.0], [0.0, 0.0], [0.5, 1.0]])
    robot = three_joints().with_transmission(Transmission(("mixed", "screw"), coupling, np.array([20.0, 300.0])))
    robot = robot.with_terms(robot.motor_term("mixed", "fv"), robot.motor_term("screw", "fv"))
    unit = {p.name: p.unit for p in robot.layout}
    assert (unit["fv_mixed"], unit["fv_screw"]) == ("N m s/rad", "N s/m")
    # With its only revolute joint locked, the first motor moves a slide alone.
    unit = {p.name: p.unit for p in robot.locked({"joint1": 0.2}).layout}
    assert (unit["fv_mixed"], unit["fv_screw"]) == ("N s/m", "N s/m")


def test_a_custom_term_keeps_its_own_unit() -> None:
    robot = three_joints()
    robot = robot.with_terms(robot.custom_term("seal", "joint3", lambda q, v, a: np.zeros_like(q), unit="N s2/m2"))
    assert [p.unit for p in robot.layout if p.name == "seal_joint3"] == ["N s2/m2"]


def test_custom_terms_are_columns_and_move_the_robot() -> None:
    """A user's column enters torque, regressor, mass matrix and forward dynamics, acceleration included."""
    robot = three_joints().with_drives("viscous+coulomb")

    def ripple(q: Array, v: Array, a: Array) -> Array:
        return np.sin(3 * q) + v**3

    def geared(q: Array, v: Array, a: Array) -> Array:
        return a * (2 + np.cos(q)) + v

    robot = robot.with_terms(robot.custom_term("ripple", 0, ripple, 0.3), robot.custom_term("geared", 2, geared, 0.4))
    q, v, a = motion(robot)
    Y = dynid.regressor(robot, q, v, a)
    np.testing.assert_array_equal(Y[:, :, robot.parameter_names.index("ripple_joint1")], ripple(q, v, a))
    np.testing.assert_array_equal(Y[:, :, robot.parameter_names.index("geared_joint3")], geared(q, v, a))
    tau = dynid.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(Y @ robot.parameters, tau, atol=EXACT)
    np.testing.assert_allclose(dynid.forward_dynamics(robot, q, v, tau), a, atol=1e-11)  # one solve with M
    still = np.zeros_like(v)
    carried = dynid.inverse_dynamics(robot, q, v, a) - dynid.inverse_dynamics(robot, q, v, still)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", dynid.mass_matrix(robot, q), a), carried, atol=1e-11)


def test_forward_dynamics_undoes_inverse_dynamics_with_all_drives() -> None:
    """With every kind of term on joints and motors, accelerations come back from the torques they need."""
    robot = coupled()
    rng = np.random.default_rng(2)
    joints = [
        robot.joint_term(i, s, rng.uniform(0.1, 1), velocity=VELOCITY.get(s, 0.0))
        for i in range(3)
        for s in DRIVE_SYMBOLS
    ]
    # Cross-only rotors take from the diagonal; small ones leave the mass matrix positive definite.
    motors = [
        robot.motor_term(f"m{i + 1}", s, 0.05 * rng.uniform(0.1, 1), cross_only=i == 1, velocity=VELOCITY.get(s, 0.0))
        for i in range(3)
        for s in DRIVE_SYMBOLS
    ]
    robot = robot.with_terms(*joints, *motors)
    q, v, a = motion(robot, samples=20)
    tau = dynid.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(dynid.forward_dynamics(robot, q, v, tau), a, atol=1e-11)


# -- published transmissions -----------------------------------------------------------------------


def test_wam_differentials_follow_the_published_formula() -> None:
    """h = f_joint(v) + T (f_motor(T' v) + I_motor T' a), Sousa (2014) equations 4.1 to 4.12, T without ratios."""
    T = np.diag([-1.0, 0, 0, 1, 0, 0, -1])
    T[1:3, 1:3] = [[1, -1], [-1 / 1.68, -1 / 1.68]]
    T[4:6, 4:6] = [[1, 1], [-1, 1]]
    robot = dynid.load_robot("wam7")
    rng = np.random.default_rng(3)
    robot = robot.with_parameters(robot.parameters + rng.uniform(0, 0.1, len(robot.parameters)))
    p = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    joint = {s: np.array([p[f"{s}_joint{k}"] for k in range(1, 8)]) for s in ("fv", "fc", "off")}
    motor = {s: np.array([p[f"{s}_motor{k}"] for k in range(1, 8)]) for s in ("Ia", "fv", "fc", "off")}
    for q, v, a in zip(*motion(robot), strict=True):
        vm, am = T.T @ v, T.T @ a
        h = joint["fv"] * v + joint["fc"] * np.sign(v) + joint["off"]
        h += T @ (motor["fv"] * vm + motor["fc"] * np.sign(vm) + motor["off"] + motor["Ia"] * am)
        ours = dynid.inverse_dynamics(robot, q, v, a) - dynid.inverse_dynamics(robot.without("*"), q, v, a)
        np.testing.assert_allclose(ours, h, atol=EXACT * 10)  # difference of torques up to 50 N m
    ratios = np.array([42, 28.25, 28.25, 18, 10.27, 10.27, 14.93])
    assert robot.transmission is not None
    np.testing.assert_allclose(robot.transmission.matrix, T * ratios, atol=1e-12)


def test_tx40_wrist_coupling_follows_the_published_formula() -> None:
    """Row 5 gains Ia a6 + fv v6 + fc sign(v5 + v6), row 6 the same with a5 and v5: Nguyen (2021), Fig. 3.7."""
    robot = dynid.load_robot("tx40")
    names = ["Ia_motor6", "fv_motor6", "fc_motor6"]
    pi = robot.parameters.copy()
    pi[[robot.parameter_names.index(n) for n in names]] = 0.011, 0.61, 2.1
    robot = robot.with_parameters(pi)
    assert [robot.parameter_labels[robot.parameter_names.index(n)] for n in names] == ["Iam_6", "fvm_6", "fcm_6"]
    plain = robot.without("*_motor6")
    for q, v, a in zip(*motion(robot), strict=True):
        dry = 2.1 * np.sign(v[4] + v[5])
        added = [0, 0, 0, 0, 0.011 * a[5] + 0.61 * v[5] + dry, 0.011 * a[4] + 0.61 * v[4] + dry]
        ours = dynid.inverse_dynamics(robot, q, v, a) - dynid.inverse_dynamics(plain, q, v, a)
        np.testing.assert_allclose(ours, added, atol=EXACT * 10)  # difference of torques up to 50 N m


def test_transmission_maps_torques_and_speeds_by_transposes() -> None:
    """tau_joint = T tau_motor and v_motor = T' v_joint with T = coupling * ratios; TX40's joint 4 turns backwards."""
    transmission = dynid.load_robot("tx40").transmission
    assert transmission is not None
    T = np.diag([32.0, 32, 45, -48, 45, 32])
    T[4, 5] = 32
    np.testing.assert_array_equal(transmission.matrix, T)


# -- smooth Coulomb friction -----------------------------------------------------------------------


def test_smooth_coulomb_follows_tanh_on_joints_and_motors() -> None:
    """Columns are d tanh(slope d . v), halved and lifted where they are one-sided, and Y pi is the inverse dynamics."""
    bare = coupled()
    sharp = bare.with_terms(
        bare.joint_term(0, "fc", 0.7),
        bare.joint_term(1, "fcp", 0.5),
        bare.joint_term(1, "fcn", 0.4),
        bare.motor_term("m3", "fc", 0.3),
        bare.joint_term(2, "fv", 0.2),
    )
    robot, slope = sharp.with_smooth_coulomb(8.0), 8.0
    q, v, a = motion(robot, 3)
    Y = dynid.regressor(robot, q, v, a)
    np.testing.assert_allclose(Y @ robot.parameters, dynid.inverse_dynamics(robot, q, v, a), atol=EXACT * 10)
    smooth = {
        "fc_joint1": (np.eye(3)[0], lambda s: np.tanh(slope * s)),
        "fcp_joint2": (np.eye(3)[1], lambda s: 0.5 + 0.5 * np.tanh(slope * s)),
        "fcn_joint2": (np.eye(3)[1], lambda s: -0.5 + 0.5 * np.tanh(slope * s)),
        "fc_m3": (COUPLING[:, 2], lambda s: np.tanh(slope * s)),
        "fv_joint3": (np.eye(3)[2], lambda s: s),
    }
    for name, (d, f) in smooth.items():
        column = Y[:, :, robot.parameter_names.index(name)]
        np.testing.assert_allclose(column, f(v @ d)[:, None] * d, atol=EXACT, err_msg=name)


def test_smooth_coulomb_comes_back_sharp_and_tends_to_it() -> None:
    """Slope 0 is the sharp step again; a steep slope is the step wherever the shaft moves."""
    robot = dynid.load_robot("tx40")
    q, v, a = motion(robot, 4)
    sharp = dynid.inverse_dynamics(robot, q, v, a)
    back = robot.with_smooth_coulomb(10.0).with_smooth_coulomb(0.0)
    np.testing.assert_array_equal(dynid.inverse_dynamics(back, q, v, a), sharp)
    assert np.abs(dynid.inverse_dynamics(robot.with_smooth_coulomb(1.0), q, v, a) - sharp).max() > 0.1
    np.testing.assert_allclose(dynid.inverse_dynamics(robot.with_smooth_coulomb(1e9), q, v, a), sharp, atol=1e-9)
    slopes = {t.symbol: t.slope for t in robot.with_smooth_coulomb(10.0).drives}
    assert slopes == {"Ia": 0.0, "fv": 0.0, "fc": 10.0, "off": 0.0}


def test_forward_dynamics_undoes_inverse_dynamics_with_smooth_coulomb() -> None:
    """Both have the same friction, also through zero velocity."""
    robot = dynid.load_robot("tx40").with_smooth_coulomb(30.0)
    q, v, a = motion(robot, 5)
    v[0] = 0.0
    np.testing.assert_allclose(
        dynid.forward_dynamics(robot, q, v, dynid.inverse_dynamics(robot, q, v, a)), a, atol=1e-9
    )


@pytest.mark.parametrize("symbol", [s for s in DRIVE_SYMBOLS if s not in ("fc", "fcp", "fcn", "fs")])
def test_only_terms_that_jump_have_a_slope(symbol: str) -> None:
    """Refused by name, on every other kind of term."""
    with expect_error(ModelError, "slope", "invalid_value"):
        replace(three_joints().joint_term(0, symbol, 1.0), slope=5.0)


def test_slopes_must_be_finite_and_not_negative() -> None:
    """The slope must not be negative."""
    term = three_joints().joint_term(0, "fc", 1.0)
    for slope in (-1.0, np.nan, np.inf):
        with pytest.raises(dynid.ModelError, match="slope"):
            replace(term, slope=slope)
    own = three_joints().custom_term("fc", "joint1", lambda q, v, a: np.tanh(v))
    with expect_error(ModelError, "slope", code="invalid_value"):
        replace(own, slope=1.0)


# -- changing what is modelled ---------------------------------------------------------------------


def test_a_new_friction_law_carries_the_values_it_can() -> None:
    """Coulomb friction of both directions starts from the symmetric value, and the mean comes back from it."""
    robot = three_joints().with_drives("viscous+coulomb+offset", rotor_inertia=True)
    values = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    values |= {"fv_joint1": 2.0, "fc_joint1": 3.0, "off_joint1": 4.0, "Ia_joint1": 5.0}
    robot = robot.with_parameters([values[n] for n in robot.parameter_names])
    split = robot.with_drives("viscous+coulomb-asymmetric")
    value = dict(zip(split.parameter_names, split.parameters, strict=True))
    assert (value["fv_joint1"], value["fcp_joint1"], value["fcn_joint1"], value["Ia_joint1"]) == (2, 3, 3, 5)
    assert "off_joint1" not in value
    uneven = split.with_parameters([2.0 if n == "fcp_joint1" else value[n] for n in split.parameter_names])
    joined = uneven.with_drives("coulomb", rotor_inertia=False)
    assert [(t.name, t.value) for t in joined.drives] == [("fc_joint1", 2.5), ("fc_joint2", 0), ("fc_joint3", 0)]


def test_a_new_friction_law_keeps_the_slope_of_coulomb_friction() -> None:
    smooth = three_joints().with_drives("coulomb").with_smooth_coulomb(50.0)
    other = smooth.with_drives("viscous+coulomb-asymmetric+offset", rotor_inertia=True)
    assert {t.slope for t in other.drives if t.is_coulomb} == {50.0}


def test_changing_friction_leaves_springs_motors_and_own_terms_alone() -> None:
    """Only the joint-side friction law is replaced, even where a user's own term is called like a part of it."""
    robot = coupled().with_drives({"joint1": "viscous"})
    robot = robot.with_terms(
        robot.joint_term("joint2", "k", 7.0, rest=0.5),
        robot.motor_term("m1", "fv", 8.0),
        robot.custom_term("fv", "joint3", lambda q, v, a: np.tanh(v), 9.0),
    )
    other = robot.with_drives({"joint1": "coulomb"})
    left = {t.name: (t.value, t.rest) for t in other.drives}
    assert left == {"fc_joint1": (0, 0), "k_joint2": (7, 0.5), "fv_m1": (8, 0), "fv_joint3": (9, 0)}


def test_without_drops_by_name_label_and_pattern() -> None:
    """Names and short labels work, wildcards too, and the rest of the vector keeps its values."""
    robot = dynid.load_robot("tx40")
    fewer = robot.without("off_*", "Iam_6", "fv_joint2")
    gone = set(robot.parameter_names) - set(fewer.parameter_names)
    assert gone == {f"off_joint{k}" for k in range(1, 7)} | {"Ia_motor6", "fv_joint2"}
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    np.testing.assert_array_equal(fewer.parameters, [value[n] for n in fewer.parameter_names])
    assert len(robot.without("*").parameters) == 60


def test_parameters_come_back_as_they_were_given() -> None:
    """with_parameters(p).parameters is p, in the order of parameter_names."""
    robot = dynid.load_robot("wam7", base="instrumented")
    given = np.random.default_rng(4).uniform(-1, 1, len(robot.parameter_names))
    np.testing.assert_array_equal(robot.with_parameters(given).parameters, given)
