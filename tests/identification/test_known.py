"""Which standard parameters a recording determines, and which the prior decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.identification.known import ParameterClass, prior_shares
from tests.support.synthetic import EXACT, arm, record

UNSEEN = ParameterClass.UNIDENTIFIABLE


@pytest.fixture(scope="module")
def estimate() -> dynid.Estimate:
    return dynid.identify(arm(), record(arm()), "feasible", signals=EXACT)


@pytest.mark.parametrize("method", ["feasible", "wls"])
def test_structure_is_respected(method: str) -> None:
    """What no motion shows is never identified; what is exact and alone always is."""
    found = dynid.identify(arm(), record(arm()), method, signals=EXACT)
    classes = found.parameter_classes
    assert list(classes) == list(found.robot.parameter_names)
    for name, kind in found.base.classes.items():
        if kind == "unidentifiable":
            assert classes[name] == UNSEEN
        if kind == "identifiable":
            assert classes[name] == ParameterClass.IDENTIFIABLE
        if kind == "combined":
            assert classes[name] != ParameterClass.IDENTIFIABLE


def test_shares_are_those_of_bayes(estimate: dynid.Estimate) -> None:
    """A combination with a standard deviation that is infinite or far above the prior's leaves all to the prior."""
    shares = prior_shares(estimate)
    alone = [n for n, kind in estimate.base.classes.items() if kind == "identifiable" and not n.startswith(("f", "I"))]
    at = [estimate.robot.parameter_names.index(n) for n in alone]
    assert at and np.all(shares[at] < 1e-3)
    for covariance in (
        1e12 * estimate.covariance + 1e12 * np.eye(len(estimate.beta)),
        np.diag([np.inf] * len(estimate.beta)),
    ):
        poor = replace(estimate, covariance=covariance, standard_covariance=None)
        inertial = np.array([p.inertial for p in estimate.robot.layout])
        assert np.all(prior_shares(poor)[inertial] > 0.9)


def test_what_stands_still_is_unidentifiable(estimate: dynid.Estimate) -> None:
    """One infinite variance makes its drive parameter unidentifiable, and nothing else of the drives."""
    name = next(n for n, p in zip(estimate.base.names, estimate.base.kept, strict=True) if n.startswith("fc_"))
    i = estimate.base.names.index(name)
    covariance = estimate.covariance.copy()
    covariance[i, i] = np.inf
    classes = replace(estimate, covariance=covariance).parameter_classes
    assert classes[name] == UNSEEN
    changed = [n for n, kind in estimate.parameter_classes.items() if classes[n] != kind]
    assert changed == [name]


def test_a_value_far_from_the_prior_is_not_called_a_priori(estimate: dynid.Estimate) -> None:
    """A mass that the data moved is part of a combination, whatever its own variance."""
    masses = [n for n, kind in estimate.base.classes.items() if kind == "combined" and n.startswith("m_")]
    assert masses
    assert estimate.standard is not None
    standard, j = estimate.standard.copy(), estimate.robot.parameter_names.index(masses[0])
    standard[j : j + 10] *= 0.01
    assert replace(estimate, standard=standard).parameter_classes[masses[0]] == ParameterClass.COMBINED


def test_standard_deviations_of_both_tables_agree(estimate: dynid.Estimate) -> None:
    """A parameter that is a base parameter by itself has one standard deviation."""
    assert estimate.standard_std is not None
    names = estimate.robot.parameter_names
    for name, std, row in zip(estimate.base.names, estimate.std, estimate.base.matrix, strict=True):
        if np.count_nonzero(row) == 1:
            assert estimate.standard_std[names.index(name)] == std
    assert replace(estimate, standard_covariance=None).standard_std is None


def test_classes_are_saved(estimate: dynid.Estimate) -> None:
    assert estimate.to_dict()["parameter_classes"] == {n: k.value for n, k in estimate.parameter_classes.items()}
