"""Rewriting of a complete expression graph into one with fewer operations.

Two rewritings: common factors are taken out of sums whose products have no other use, and sign changes are moved
to where they cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dynid.codegen.graph import Graph, Node, reachable, use_counts
from dynid.codegen.operations import count_operations

__all__ = ["simplified"]

# A sum as its terms: sign and factors of each.
Term = tuple[bool, tuple[Node, ...]]
_SUMS = ("add", "sub", "neg")


def simplified(outputs: Sequence[Node]) -> list[Node]:
    """The same outputs in a new graph, with at most as many operations."""
    best = list(outputs)
    while True:
        tried = _factored(best)
        if count_operations(tried).total >= count_operations(best).total:
            return _signs_pushed(best)
        best = tried


def _factored(outputs: Sequence[Node]) -> list[Node]:
    uses = use_counts(outputs)
    order = reachable(outputs)
    inner = _inner(order, outputs, uses)
    graph = Graph()
    made: dict[int, Node] = {}
    for node in order:
        if node.index in inner:
            continue
        if node.kind in _SUMS:
            made[node.index] = _build(graph, [(s, _factors(x, uses, made)) for s, x in _terms(node, inner)])
        elif node.kind == "mul":
            made[node.index] = _product(graph, _factors(node, uses, made))
        else:
            made[node.index] = _again(graph, node, [made[x.index] for x in node.args])
    return [made[x.index] for x in outputs]


def _inner(order: Sequence[Node], outputs: Sequence[Node], uses: dict[int, int]) -> set[int]:
    """Nodes that are read once and only as a part of the sum or product above them."""
    kept = {x.index for x in outputs}
    out = set()
    for node in order:
        for x in node.args:
            once = uses[x.index] == 1 and x.index not in kept
            if once and ((node.kind in _SUMS and x.kind in (*_SUMS, "mul")) or (node.kind == x.kind == "mul")):
                out.add(x.index)
    return out


def _terms(root: Node, inner: set[int]) -> list[tuple[bool, Node]]:
    """Signed terms of the sum that ends in `root` (True: plus), in order."""
    out: list[tuple[bool, Node]] = []
    stack = [(True, root, True)]
    while stack:
        plus, node, first = stack.pop()
        if node.kind in _SUMS and (first or node.index in inner):
            signs = (True, True) if node.kind == "add" else (True, False) if node.kind == "sub" else (False,)
            pairs = list(zip(signs, node.args, strict=True))
            stack.extend((plus == s, x, False) for s, x in reversed(pairs))
        else:
            out.append((plus, node))
    return out


def _factors(node: Node, uses: dict[int, int], made: dict[int, Node]) -> tuple[Node, ...]:
    """Factors, made again, of a product; one that is also read elsewhere is a factor by itself."""
    if node.index in made:
        return (made[node.index],)
    out: list[Node] = []
    for x in node.args:
        out += _factors(x, uses, made) if x.kind == "mul" else [made[x.index]]
    return tuple(out)


def _build(graph: Graph, terms: list[Term]) -> Node:
    """The sum, with the factor that most terms share taken out until none is shared."""
    counts: Counter[int] = Counter()
    for _, factors in terms:
        counts.update({x.index for x in factors if not x.is_one})
    shared = max(counts.values(), default=0)
    if shared < 2:
        return graph.total(x if plus else -x for plus, x in ((p, _product(graph, f)) for p, f in terms))
    # Of equals a constant last: x (a + b) of two constants folds them.
    index = max((i for i, n in counts.items() if n == shared), key=lambda i: (graph.nodes[i].kind != "const", -i))
    factor = graph.nodes[index]
    taken = [(p, _without(graph, f, factor)) for p, f in terms if factor in f]
    rest = [(p, f) for p, f in terms if factor not in f]
    common = graph.mul(factor, _build(graph, taken))
    return _build(graph, [*rest, (True, (common,))]) if rest else common


def _without(graph: Graph, factors: tuple[Node, ...], factor: Node) -> tuple[Node, ...]:
    left = list(factors)
    left.remove(factor)
    return tuple(left) or (graph.one,)


def _product(graph: Graph, factors: Sequence[Node]) -> Node:
    out = graph.one
    for x in factors:
        out = graph.mul(out, x)
    return out


def _again(graph: Graph, node: Node, args: Sequence[Node]) -> Node:
    """The same operation in another graph."""
    if node.kind == "const":
        return graph.const(node.value)
    if node.kind == "input":
        return graph.input(node.name, node.position)
    if node.kind in ("add", "sub", "mul", "div"):
        return {"add": graph.add, "sub": graph.sub, "mul": graph.mul, "div": graph.div}[node.kind](*args)
    return graph.neg(args[0]) if node.kind == "neg" else graph.call(node.kind, args[0])


def _signs_pushed(outputs: Sequence[Node]) -> list[Node]:
    """Negations of what nothing else reads moved into constants and the order of subtractions."""
    uses = use_counts(outputs)
    graph = Graph()
    made: dict[int, Node] = {}
    for node in reachable(outputs):
        if node.kind == "neg":
            turned = _negated(graph, node.args[0], uses, made)
            made[node.index] = turned if turned else graph.plain("neg", (made[node.args[0].index],))
        elif node.kind in ("const", "input"):
            made[node.index] = _again(graph, node, ())
        else:
            made[node.index] = graph.plain(node.kind, tuple(made[x.index] for x in node.args))
    return [made[x.index] for x in outputs]


def _negated(graph: Graph, node: Node, uses: dict[int, int], made: dict[int, Node]) -> Node | None:
    """The negative of a node at no cost, or None where there is none."""
    if node.kind == "const":
        return graph.const(-node.value)
    if uses[node.index] > 1:
        return None
    if node.kind == "neg":
        return made[node.args[0].index]
    if node.kind == "sub":
        return graph.plain("sub", (made[node.args[1].index], made[node.args[0].index]))
    if node.kind in ("add", "mul", "div"):
        for x, y in ((0, 1), (1, 0)):
            turned = _negated(graph, node.args[x], uses, made)
            if turned is None:
                continue
            other = made[node.args[y].index]
            if node.kind == "add":
                return graph.plain("sub", (turned, other))
            return graph.plain(node.kind, (turned, other) if x == 0 else (other, turned))
    return None
