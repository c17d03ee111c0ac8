"""Where lines come from: files that grow, are cut or replaced, and sockets on this computer."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from dynid.errors import DataError
from dynid.online.sources import LineSource, open_source


def test_a_file_that_grows(tmp_path: Path) -> None:
    """Only complete lines are handed on; a file that is cut or replaced is read from its beginning."""
    path = tmp_path / "log.csv"
    path.write_text("a\r\nb\nc")
    source = open_source(str(path))
    assert source.read(0.0) == ["a", "b"] and source.read(0.0) == [] and not source.ended
    with path.open("a") as file:
        file.write("d\n")
    assert source.read(0.0) == ["cd"]
    path.write_text("new\n")
    assert source.read(0.0) == ["new"]
    (tmp_path / "other").write_text("next\n")
    (tmp_path / "other").rename(path)
    assert source.read(0.0) == ["next"]
    source.close()


def served(server: socket.socket) -> None:
    """Send two lines in pieces and close."""
    connection, _ = server.accept()
    with connection:
        for piece in (b"on", b"e\ntwo\nla", b"st"):
            connection.sendall(piece)


def everything(source: LineSource) -> list[str]:
    lines: list[str] = []
    while not source.ended:
        lines += source.read(1.0)
    source.close()
    return lines


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_socket_on_this_computer(kind: str, tmp_path: Path) -> None:
    if kind == "unix":
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(tmp_path / "s"))
        name = f"unix:{tmp_path / 's'}"
    else:
        server = socket.create_server(("127.0.0.1", 0))
        name = f"localhost:{server.getsockname()[1]}"
    server.listen(1)
    thread = threading.Thread(target=served, args=(server,))
    thread.start()
    assert everything(open_source(name)) == ["one", "two", "last"]
    thread.join()
    server.close()


def test_a_file_that_a_folder_replaces_for_a_while(tmp_path: Path) -> None:
    """The reading goes on with the next file of that name."""
    path = tmp_path / "log.csv"
    path.write_text("one\n")
    source = open_source(str(path))
    assert source.read(0.0) == ["one"]
    path.unlink()
    path.mkdir()
    assert source.read(0.0) == []
    path.rmdir()
    assert source.read(0.0) == []
    path.write_text("two\n")
    assert source.read(0.0) == ["two"]
    source.close()


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x" * 200_000)
    source = open_source(str(path))
    assert all(len(line) <= 1 << 16 for _ in range(5) for line in source.read(0.0))
    source.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("example.com:80", "no address of this computer"),
        ("10.0.0.1:80", "no address of this computer"),
        ("nowhere.csv", "cannot be read"),
        ("unix:/nowhere", "cannot be reached"),
        ("localhost:99999", "ports are 1 to 65535"),
        ("localhost:\u00b2", "cannot be read"),
    ],
)
def test_sources_that_are_not_there_or_not_here_are_refused(text: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        open_source(text, patience=0.0)
