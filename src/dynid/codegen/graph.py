"""A graph of scalar expressions in which equal expressions are one node.

Every node is made through its graph, which folds constants, zeros, ones and negations as it goes and hands out the node
it already has for an expression it has seen. A recursion written with ordinary operators therefore collects its common
subexpressions while it runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError

__all__ = ["BINARY", "CALLS", "KINDS", "Graph", "Node", "evaluate", "reachable", "use_counts"]

Array = NDArray[np.float64]

BINARY = ("add", "sub", "mul", "div")
# step(x) is 1 where x > 0 and else 0, ramp(x) is max(x, 0), sign(0) is 0.
CALLS = ("sin", "cos", "tanh", "exp", "sign", "step", "ramp")
KINDS = ("const", "input", *BINARY, "neg", *CALLS)

_ODD = ("sin", "tanh", "sign")


class Node:
    """One expression: a kind of KINDS, its arguments, and what an input or a constant is.

    `value` is the number of a "const"; `name` and `position` tell which entry of which array an "input" is. `index`
    counts the nodes of a graph as they were made; `reachable` gives them in an order fit for evaluation.
    """

    __slots__ = ("args", "graph", "index", "kind", "name", "position", "value")

    def __init__(
        self, graph: Graph, index: int, kind: str, args: tuple[Node, ...], value: float, name: str, position: int
    ) -> None:
        self.graph, self.index, self.kind, self.args = graph, index, kind, args
        self.value, self.name, self.position = value, name, position

    @property
    def is_zero(self) -> bool:
        return self.kind == "const" and self.value == 0.0

    @property
    def is_one(self) -> bool:
        return self.kind == "const" and self.value == 1.0

    def __add__(self, other: Node | float) -> Node:
        return self.graph.add(self, other)

    def __radd__(self, other: float) -> Node:
        return self.graph.add(self, other)

    def __sub__(self, other: Node | float) -> Node:
        return self.graph.sub(self, other)

    def __rsub__(self, other: float) -> Node:
        return self.graph.sub(other, self)

    def __mul__(self, other: Node | float) -> Node:
        return self.graph.mul(self, other)

    def __rmul__(self, other: float) -> Node:
        return self.graph.mul(self, other)

    def __truediv__(self, other: Node | float) -> Node:
        return self.graph.div(self, other)

    def __neg__(self) -> Node:
        return self.graph.neg(self)

    def __repr__(self) -> str:
        if self.kind == "const":
            return repr(self.value)
        if self.kind == "input":
            return f"{self.name}[{self.position}]"
        return f"{self.kind}({', '.join(f'#{x.index}' for x in self.args)})"


class Graph:
    """Makes nodes, each expression once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[tuple[Any, ...], Node] = {}
        self.zero = self.const(0.0)
        self.one = self.const(1.0)

    def const(self, value: float) -> Node:
        value = float(value)
        if not math.isfinite(value):
            raise DataError("a constant of the generated code is not finite", code="invalid_model")
        return self._node("const", (), value=value + 0.0)  # + 0.0 makes -0.0 a plain zero

    def input(self, name: str, position: int) -> Node:
        """Entry `position` of the input array `name`."""
        return self._node("input", (), name=name, position=position)

    def inputs(self, name: str, size: int) -> list[Node]:
        return [self.input(name, i) for i in range(size)]

    def add(self, a: Node | float, b: Node | float) -> Node:
        a, b = self._lift(a), self._lift(b)
        if a.is_zero:
            return b
        if b.is_zero:
            return a
        if a.kind == "const" and b.kind == "const":
            return self.const(a.value + b.value)
        if a.kind == "neg" and b.kind == "neg":
            return self.neg(self.add(a.args[0], b.args[0]))
        if b.kind == "neg":
            return self.sub(a, b.args[0])
        if a.kind == "neg":
            return self.sub(b, a.args[0])
        if a.kind == "const" and a.value < 0:
            return self.sub(b, -a.value)
        if b.kind == "const" and b.value < 0:
            return self.sub(a, -b.value)
        if a is b:
            return self.mul(2.0, a)
        return self._node("add", self._ordered(a, b))

    def sub(self, a: Node | float, b: Node | float) -> Node:
        """a - b; of a - b and b - a only one is a node, the other its negation."""
        a, b = self._lift(a), self._lift(b)
        if a is b:
            return self.zero
        if b.is_zero:
            return a
        if a.is_zero:
            return self.neg(b)
        if a.kind == "const" and b.kind == "const":
            return self.const(a.value - b.value)
        if b.kind == "neg":
            return self.add(a, b.args[0])
        if a.kind == "neg":
            return self.neg(self.add(a.args[0], b))
        if b.kind == "const" and b.value < 0:
            return self.add(a, -b.value)
        if a.kind == "const" and a.value < 0:
            return self.neg(self.add(-a.value, b))
        if a.index > b.index:
            return self.neg(self._node("sub", (b, a)))
        return self._node("sub", (a, b))

    def mul(self, a: Node | float, b: Node | float) -> Node:
        """Product; its sign and its constant stand in front, as neg(mul(const, rest))."""
        a, b = self._lift(a), self._lift(b)
        if a.kind == "const" and b.kind == "const":
            return self.const(a.value * b.value)
        if b.kind == "const":
            a, b = b, a
        if a.is_zero:
            return self.zero
        if a.is_one:
            return b
        if b.kind == "neg":
            return self.neg(self.mul(a, b.args[0]))
        if a.kind == "neg":
            return self.neg(self.mul(a.args[0], b))
        if a.kind == "const":
            if a.value < 0:
                return self.neg(self.mul(-a.value, b))
            if b.kind == "mul" and b.args[0].kind == "const":
                return self.mul(a.value * b.args[0].value, b.args[1])
            return self._node("mul", (a, b))
        return self._node("mul", self._ordered(a, b))

    def div(self, a: Node | float, b: Node | float) -> Node:
        a, b = self._lift(a), self._lift(b)
        if b.kind == "const":
            if b.value == 0.0:
                raise DataError("the generated code would divide by zero", code="invalid_model")
            return self.mul(a, 1.0 / b.value)
        if a.is_zero:
            return a
        if a.kind == "neg":
            return self.neg(self.div(a.args[0], b))
        if b.kind == "neg":
            return self.neg(self.div(a, b.args[0]))
        return self._node("div", (a, b))

    def neg(self, a: Node | float) -> Node:
        a = self._lift(a)
        if a.kind == "const":
            return self.const(-a.value)
        if a.kind == "neg":
            return a.args[0]
        return self._node("neg", (a,))

    def call(self, kind: str, a: Node | float) -> Node:
        """One of CALLS of an expression."""
        a = self._lift(a)
        if a.kind == "const":
            return self.const(float(_NUMBERS[kind](np.float64(a.value))))
        if a.kind == "neg" and kind in _ODD:
            return self.neg(self.call(kind, a.args[0]))
        if a.kind == "neg" and kind == "cos":
            return self.call(kind, a.args[0])
        return self._node(kind, (a,))

    def total(self, terms: Iterable[Node | float]) -> Node:
        """Sum of all terms."""
        out = self.zero
        for term in terms:
            out = self.add(out, term)
        return out

    def plain(self, kind: str, args: tuple[Node, ...]) -> Node:
        """A node exactly as asked for, without any folding."""
        return self._node(kind, args)

    def _lift(self, a: Node | float) -> Node:
        return a if isinstance(a, Node) else self.const(a)

    def _ordered(self, a: Node, b: Node) -> tuple[Node, Node]:
        return (a, b) if a.index <= b.index else (b, a)

    def _node(self, kind: str, args: tuple[Node, ...], value: float = 0.0, name: str = "", position: int = 0) -> Node:
        key = (kind, value, name, position, *(x.index for x in args))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Node(self, len(self.nodes), kind, args, value, name, position)
            self.nodes.append(found)
        return found


def reachable(outputs: Iterable[Node]) -> list[Node]:
    """Every node the outputs need, arguments first, each once: all the rest is dead code."""
    seen: set[int] = set()
    order: list[Node] = []
    for root in outputs:
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
                continue
            if node.index in seen:
                continue
            seen.add(node.index)
            stack.append((node, True))
            stack.extend((x, False) for x in reversed(node.args) if x.index not in seen)
    return order


def use_counts(outputs: Sequence[Node]) -> dict[int, int]:
    """How often each needed node is read, by index; being an output counts as one reading."""
    counts: dict[int, int] = {}
    for node in reachable(outputs):
        for x in node.args:
            counts[x.index] = counts.get(x.index, 0) + 1
    for node in outputs:
        counts[node.index] = counts.get(node.index, 0) + 1
    return counts


_NUMBERS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "exp": np.exp,
    "sign": np.sign,
    "step": lambda x: np.where(x > 0, 1.0, 0.0),
    "ramp": lambda x: np.maximum(x, 0.0),
}


def evaluate(outputs: Sequence[Node], inputs: Mapping[str, Array]) -> list[Array]:
    """Numbers of the outputs for input arrays (..., size), over all leading axes at once."""
    known: dict[int, Any] = {}
    for node in reachable(outputs):
        if node.kind == "const":
            known[node.index] = np.float64(node.value)
        elif node.kind == "input":
            known[node.index] = np.asarray(inputs[node.name], dtype=float)[..., node.position]
        else:
            known[node.index] = _NUMBERS[node.kind](*(known[x.index] for x in node.args))
    return [np.asarray(known[node.index]) for node in outputs]
