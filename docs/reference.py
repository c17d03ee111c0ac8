"""The reference, drawn from the package: one page a part of the public API, and one for the command line."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import dynid

# Parts of the house in reading order, with what stands above their page.
PARTS = {
    "robot": "Robots",
    "dynamics": "Dynamics",
    "human": "Human bodies",
    "capture": "Motion capture",
    "recording": "Recordings",
    "signals": "Signals",
    "checks": "Checks",
    "excitation": "Excitation",
    "identify": "Identification",
    "feasibility": "Feasibility",
    "friction": "Friction",
    "simulate": "Simulation",
    "statistics": "Statistics",
    "residual": "Residuals",
    "export": "Model files",
    "codegen": "Generated code",
    "verdict": "Verdict",
    "report": "Report",
    "errors": "Errors",
}


def write_reference(folder: Path) -> None:
    """Write the reference pages into `folder`, which holds nothing else."""
    folder.mkdir(exist_ok=True)
    pages = {"cli.md": command_page()}
    for part, names in _parts().items():
        pages[f"{part}.md"] = api_page(PARTS[part], names)
    toc = "\n".join(["cli", *(part for part in PARTS if f"{part}.md" in pages)])
    pages["index.md"] = f"# Reference\n\n```{{toctree}}\n:maxdepth: 1\n\n{toc}\n```\n"
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        page = folder / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def _parts() -> dict[str, list[str]]:
    """Public names by the package they live in."""
    out: dict[str, list[str]] = {}
    for name in dynid.__all__:
        what = getattr(dynid, name)
        home = what.__name__ if isinstance(what, ModuleType) else what.__module__
        part = home.split(".")[1]
        if part not in PARTS:
            raise KeyError(f"'{name}' lives in '{part}', which has no page in the reference")
        out.setdefault(part, []).append(name)
    return out


def api_page(title: str, names: list[str]) -> str:
    """Classes first, then functions, then modules of functions, each as `dynid.name`."""
    blocks = []
    for name in sorted(names, key=lambda n: (_rank(getattr(dynid, n)), n.lower())):
        what = getattr(dynid, name)
        if isinstance(what, ModuleType):
            directive = f"automodule:: {what.__name__}\n:members:"
        elif inspect.isclass(what):
            directive = f"autoclass:: dynid.{name}\n:members:"
        else:
            directive = f"autofunction:: dynid.{name}"
        blocks.append(f"## {name}\n\n```{{eval-rst}}\n.. " + directive.replace("\n", "\n   ") + "\n```\n")
    return f"# {title}\n\n" + "\n".join(blocks)


def _rank(what: object) -> int:
    return 2 if isinstance(what, ModuleType) else 0 if inspect.isclass(what) else 1


def command_page() -> str:
    """Every command with the help it prints."""
    import typer

    from dynid.cli.main import app

    group = typer.main.get_command(app)
    blocks = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        context = typer.Context(command, info_name=f"dynid {name}", terminal_width=100, max_content_width=100)
        blocks.append(f"## dynid {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    return "# Command line\n\n" + "\n".join(blocks)
