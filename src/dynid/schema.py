"""Schemas of saved results: types of stored numbers, and one sentence for the first field that is wrong."""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dynid.errors import DamagedFile

__all__ = ["Count", "Finite", "Flag", "Matrix", "Number", "Stored", "checked", "is_square"]

# Numbers that JSON cannot hold are written as these words.
_WORDS = ("nan", "inf", "-inf")
# No mass, inertia, friction or gain in SI units is larger; sums of squares of larger numbers overflow.
_LARGEST = 1e100


def _number(value: Any) -> Any:
    """A stored number; text other than the words for what is not finite is none."""
    if isinstance(value, bool) or (isinstance(value, str) and value not in _WORDS):
        raise ValueError("must be a number")
    return value


Number = Annotated[float, BeforeValidator(_number)]
# Numbers without which a result has no meaning are finite.
Finite = Annotated[float, BeforeValidator(_number), Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
# A variance may be infinite: of what the recording does not show.
_Variance = Annotated[Number, Field(ge=-math.inf)]
Matrix = list[list[_Variance]]
Count = Annotated[int, Field(strict=True, ge=0)]
Flag = Annotated[bool, Field(strict=True)]


class Stored(BaseModel):
    """Fields of a saved result by name; others than these are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_Schema = TypeVar("_Schema", bound=Stored)


def checked(schema: type[_Schema], data: Any, message: str) -> _Schema:
    """The stored data, refused with `message` and the first field that is missing, unknown or of another type."""
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        raise DamagedFile(f"{message}: {f'{place}: ' if place else ''}{reason}") from None


def is_square(matrix: Matrix, size: int) -> bool:
    """Whether stored rows are those of a square matrix of this size."""
    return [len(row) for row in matrix] == [size] * size
