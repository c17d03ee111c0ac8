"""The board on which columns are dropped."""

from __future__ import annotations

import re

from dynid.studio.mapping import LogMapping
from dynid.studio.mapping_board import Dropped, board_html, dropped
from tests.studio.test_mapping import mapping


def cells(text: str) -> dict[tuple[str, str], str]:
    """Signal and joint to what the cell holds."""
    found = re.findall(r'<td[^>]*data-signal="([^"]*)"[^>]*?(?:data-channel="([^"]*)")?>(.*?)</td>', text)
    return {(signal, channel): inside for signal, channel, inside in found}


def test_a_cell_holds_the_column_of_its_signal_and_joint() -> None:
    found = mapping(header=True).assign([0], "t").assign([1, 2, 3], "q").assign([4], "link_q", "b").lock({"c": 0.0})
    text = board_html(found)
    board = cells(text)
    assert (
        'data-number="0"' in board["t", ""] and ">c2<" in board["q", "b"] and 'data-number="4"' in board["link_q", "b"]
    )
    assert board["torque", "a"] == "" and ("a", "a") not in board and "drop here" in board["none", ""]
    assert text.count("draggable") == 5 and "c (locked)" in text


def test_names_of_files_are_no_markup() -> None:
    odd = LogMapping(mapping().columns, ("<b>x</b>", '"y'))
    assert "<b>" not in board_html(odd) and "&quot;y" in board_html(odd)


def test_only_columns_can_be_dropped() -> None:
    log = mapping()
    assert dropped("3", "q", "b", log) == Dropped(3, "q", "b")
    assert dropped("3", "none", "b", log) == Dropped(3, "", "") and dropped("3", "t", "", log) == Dropped(3, "t", "")
    for number in ("", "text", "12", "-1", "3.5", "9" * 9, "²"):
        assert dropped(number, "q", "b", log) is None
    assert dropped("3", "q", "nobody", log) is None
