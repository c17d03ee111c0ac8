"""The expression graph: one node an expression, folding, and rewritings that keep the value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.codegen.graph import CALLS, Graph, Node, evaluate, reachable
from dynid.codegen.operations import count_operations
from dynid.codegen.simplify import simplified


@pytest.fixture
def xyz() -> tuple[Node, Node, Node]:
    graph = Graph()
    return graph.input("q", 0), graph.input("q", 1), graph.input("q", 2)


def test_equal_expressions_are_one_node(xyz: tuple[Node, Node, Node]) -> None:
    x, y, _ = xyz
    assert x + y is y + x and x * y is y * x
    assert (x - y) is -(y - x)
    assert (-x) * y is -(x * y) and (-x) * (-y) is x * y
    assert 2.0 * (3.0 * x) is 6.0 * x


def test_zeros_and_ones_vanish(xyz: tuple[Node, Node, Node]) -> None:
    x, y, _ = xyz
    assert x + 0.0 is x and x * 1.0 is x and (x * 0.0).is_zero and (x - x).is_zero
    assert x * -1.0 is -x and x + (-1.0) * y is x - y and x.graph.neg(-x) is x
    assert x.graph.call("sin", -x) is -x.graph.call("sin", x)
    assert x.graph.call("cos", -x) is x.graph.call("cos", x)
    assert x.graph.call("cos", 0.0).is_one


def test_dead_code_is_not_counted(xyz: tuple[Node, Node, Node]) -> None:
    x, y, z = xyz
    _ = x * z
    assert count_operations([x * y]).multiplications == 1
    assert len(reachable([x * y])) == 3


def test_common_factors_are_taken_out(xyz: tuple[Node, Node, Node]) -> None:
    x, y, z = xyz
    counts = count_operations(simplified([x * y + x * z]))
    assert (counts.additions, counts.multiplications) == (1, 1)
    like = count_operations(simplified([2.0 * x + 3.0 * x]))
    assert (like.additions, like.multiplications) == (0, 1)


def test_a_shared_product_is_left_alone(xyz: tuple[Node, Node, Node]) -> None:
    """Taking a factor out of x y, which another output needs whole, would cost a product."""
    x, y, z = xyz
    outputs = [x * y + x * z, x * y]
    assert count_operations(simplified(outputs)).total <= count_operations(outputs).total


def test_signs_are_pushed_into_subtractions(xyz: tuple[Node, Node, Node]) -> None:
    x, y, z = xyz
    assert count_operations([y - x]).negations == 1  # the graph keeps x - y alone
    assert count_operations(simplified([y - x])).negations == 0
    assert count_operations(simplified([-(z * (x - y))])).negations == 0


@st.composite
def expressions(draw: st.DrawFn) -> list[Node]:
    """A few outputs over a pool of nodes that grows at random, so that sharing is common."""
    graph = Graph()
    pool = [*graph.inputs("q", 3), graph.const(2.0), graph.const(-0.5)]
    for _ in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from(["add", "sub", "mul", "neg", "call"]))
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        if kind == "call":
            pool.append(graph.call(draw(st.sampled_from(CALLS)), a))
        else:
            pool.append({"add": a + b, "sub": a - b, "mul": a * b, "neg": -a}[kind])
    return draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4))


@settings(max_examples=200, deadline=None)
@given(expressions())
def test_simplified_outputs_have_the_same_value_and_cost_no_more(outputs: list[Node]) -> None:
    # Values that are exact in binary and small powers of them: steps and signs fall on the same side.
    q = np.array([[0.5, -0.25, 1.5], [-1.0, 0.75, 0.125]])
    before, after = evaluate(outputs, {"q": q}), evaluate(simplified(outputs), {"q": q})
    assert count_operations(simplified(outputs)).total <= count_operations(outputs).total
    for x, y in zip(before, after, strict=True):
        np.testing.assert_allclose(np.broadcast_to(y, (2,)), np.broadcast_to(x, (2,)), rtol=1e-9, atol=1e-9)
