"""The record of a format of log files: what it is called, how its files are known, and the function that reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dynid.base.records import Plugins

if TYPE_CHECKING:
    from dynid.recording.table import Table

__all__ = ["PLUGINS", "Reader"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reader:
    """A format of log files. Other packages add theirs by the entry-point group `dynid.readers`.

    Attributes
    ----------
    name : str
        Short name; that of its entry point as well.
    title : str
        What its files are called within a sentence, such as "Parquet files".
    sentence : str
        How such a file is read, in one sentence.
    endings : tuple of str
        Endings of its files in lower case, such as ".csv".
    function : callable
        `function(path)` returns the `dynid.recording.table.Table` of a file, or raises a DataError that names it.
        With `topics` it is called as `function(path, topic, joints)`, with the topic or None, and the names of the
        joints that are needed or None.
    marks : tuple of str, default ()
        Names of files, with wildcards, of which one lies in every folder of this format; none where it has no folders.
    topics : bool, default False
        Whether a file has several topics, of which one is read.
    compressed : bool, default False
        Whether its files may be compressed; the function reads them by `dynid.recording.files.read_bytes`.
    extra : str, default ""
        Extra of dynid that brings the packages it needs.
    """

    name: str
    title: str
    sentence: str
    endings: tuple[str, ...]
    function: Callable[..., Table] = field(repr=False)
    marks: tuple[str, ...] = ()
    topics: bool = False
    compressed: bool = False
    extra: str = ""

    def __post_init__(self) -> None:
        wrong = [ending for ending in self.endings if not ending.startswith(".") or ending != ending.lower()]
        if wrong or not (self.endings or self.marks):
            raise ValueError(f"a format has endings such as '.csv' in lower case, or marks of its folders; got {wrong}")


PLUGINS = Plugins("dynid.readers", Reader, "reader")
