"""The page of the command line: every command with the help that it prints."""

from __future__ import annotations

from pathlib import Path

import typer


def command_page() -> str:
    """Help texts of all commands, as a Markdown page."""
    from dynid.cli.main import app

    group = typer.main.get_command(app)
    blocks = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        context = typer.Context(command, info_name=f"dynid {name}", terminal_width=88, max_content_width=88)
        blocks.append(f"## dynid {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    return "# Command line\n\n" + "\n".join(blocks)


def write_command_page(page: Path) -> None:
    """Write the page if its text has changed."""
    text = command_page()
    page.parent.mkdir(parents=True, exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
