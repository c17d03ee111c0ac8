"""What an error is about, whatever its words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dynid.errors import DynidError

__all__ = ["Error", "expect_error"]

# Class, argument and, where it is not that of the class, code: what tables of cases hold for `expect_error`.
Error = tuple[type[DynidError], str] | tuple[type[DynidError], str, str]


@contextmanager
def expect_error(
    kind: type[DynidError], argument: str = "", code: str = ""
) -> Iterator[pytest.ExceptionInfo[DynidError]]:
    """Expect an error of exactly this class, about this argument, with this code; by default that of the class."""
    with pytest.raises(kind) as info:
        yield info
    error = info.value
    assert (type(error), error.argument, error.code) == (kind, argument, code or kind.usual_code), str(error)
    assert str(error).isprintable()
