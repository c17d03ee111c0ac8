"""Graphs as CasADi functions: exact derivatives of a robot's dynamics for optimal control and estimation."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.codegen.functions import Function
from dynid.codegen.graph import Node, reachable
from dynid.codegen.program import Program
from dynid.codegen.statements import plain, title_lines
from dynid.errors import MissingPackage

if TYPE_CHECKING:
    import casadi as ca

__all__ = ["casadi_function", "emit_casadi"]

_UNSAFE = r"\\"


def emit_casadi(program: Program) -> dict[str, str]:
    """Texts of NAME_FUNCTION.casadi, one per function, which `casadi.Function.load` reads.

    CasADi reads a function up to its end; what stands in the heads of other files follows it.
    """
    files = {}
    about = "".join(f"\n# {plain(line, _UNSAFE)}" for line in title_lines(program)) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        for function in program.functions:
            path = Path(folder, "saved")
            casadi_function(program, function).save(str(path))
            files[f"{program.name}_{function.name}.casadi"] = path.read_text(encoding="ascii") + about
    return files


def casadi_function(program: Program, function: Function) -> ca.Function:
    """One function of a program."""
    try:
        import casadi as ca
    except ImportError:
        raise MissingPackage("CasADi functions need CasADi: pip install dynid[symbolic]") from None
    inputs = {x.name: ca.SX.sym(x.name, x.size) for x in function.arguments}
    known: dict[int, Any] = {}
    for node in reachable(function.outputs):
        known[node.index] = _expression(ca, node, inputs, [known[x.index] for x in node.args])
    entries = ca.vertcat(*(known[x.index] for x in function.entries))
    if len(function.shape) == 2:
        entries = ca.reshape(entries, *reversed(function.shape)).T  # CasADi fills column by column
    outputs, names = [entries], [function.result]
    if function.positive:
        outputs.append(ca.vertcat(*(known[x.index] for x in function.positive)))
        names.append("pivots")
    # CasADi does not accept names with two consecutive underscores or a leading one.
    title = re.sub("_+", "_", f"{program.name}_{function.name}").lstrip("_")
    return ca.Function(title, list(inputs.values()), outputs, list(inputs), names)


def _expression(ca: Any, node: Node, inputs: dict[str, Any], args: list[Any]) -> Any:
    if node.kind == "const":
        return ca.SX(node.value)
    if node.kind == "input":
        return inputs[node.name][node.position]
    if node.kind == "neg":
        return -args[0]
    if node.kind == "step":
        return ca.gt(args[0], 0.0)
    if node.kind == "ramp":
        return ca.fmax(args[0], 0.0)
    same = {"add": "plus", "sub": "minus", "mul": "times", "div": "rdivide"}
    return getattr(ca, same.get(node.kind, node.kind))(*args)
