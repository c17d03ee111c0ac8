"""Results: frozen dataclasses whose fields are declared once, with meaning, unit, size and how they are shown.

From the declaration come the documentation of the class, plain data, the schema of the file, saving, loading, tables
and the view in notebooks. To add a value to a result is to add one field:

    moisture: float = field(default=0.0, metadata=about("Moisture of the air.", unit="%"))
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, create_model
from pydantic import Field as Bounds

from dynid.errors import DamagedFile, DynidError
from dynid.markup import frame_html, html_table, words_of
from dynid.saved import KINDS, envelope, opened, plain_data, read_saved, write_saved
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table as Shown

__all__ = [
    "Codec",
    "Column",
    "Finite",
    "Number",
    "Reading",
    "Result",
    "SavedResult",
    "Stored",
    "Table",
    "View",
    "about",
    "decimals",
    "framed",
    "from_plain",
    "of_each",
    "text_tables",
    "to_plain",
]

# No mass, inertia, friction or gain in SI units is larger; sums of squares of larger numbers overflow.
_LARGEST = 1e100
# Numbers that JSON cannot hold are written as these words.
_WORDS = ("nan", "inf", "-inf")
_KEY = "dynid"
# Entries of a list that one line shows.
_SHORT = 6


# -- declaration ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """What is known while a result is read.

    Attributes
    ----------
    where : str
        Origin of the data, for messages.
    given : object
        What the caller gave beside the file, such as the robot.
    loader : str
        The function that the caller used, for messages.
    found : dict
        Fields of the result that were read before.
    """

    where: str
    given: Any = None
    loader: str = ""
    found: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Codec:
    """How the values of a field are stored.

    Attributes
    ----------
    stored : type
        Type of the stored data, as pydantic checks it.
    write : callable
        Value to stored data.
    read : callable
        Stored data and `Reading` to the value; a ValueError or DynidError where they are damaged.
    complete : bool
        Whether errors of `read` are whole sentences that name the file.
    """

    stored: Any
    write: Callable[[Any], Any]
    read: Callable[[Any, Reading], Any]
    complete: bool = False


def about(
    meaning: str,
    *,
    unit: str = "",
    size: Sequence[str] = (),
    finite: bool = False,
    least: int = 0,
    stored: bool = True,
    codec: Codec | None = None,
    column: str = "",
) -> dict[str, Any]:
    """What a field of a result is: `field(metadata=about(...))`.

    Parameters
    ----------
    meaning : str
        One or more sentences for the documentation.
    unit : str
        Unit, such as "N m"; "" without one.
    size : sequence of str
        Name of each dimension of an array or tuple, explained in `sizes` of the class or shared by several fields; or
        its number of entries, or "*" for one that is not checked.
    finite : bool
        Whether numbers that are not finite are refused.
    least : int
        Least number of entries of a tuple.
    stored : bool
        Whether the field is written into files. One that is not has a default.
    codec : Codec, optional
        How its values are stored, where their type does not say so.
    column : str
        Format of the values where tables show the field as a column, such as ".4g"; "" where they do not.
    """
    settings = {"meaning": meaning, "unit": unit, "size": tuple(size), "finite": finite, "least": least}
    return {_KEY: settings | {"stored": stored, "codec": codec, "column": column}}


# Of fields that are not declared, those of plain records inside of a result: arrays may have any number of dimensions.
_PLAIN: dict[str, Any] = about("")[_KEY] | {"size": None}


@dataclass(frozen=True)
class View:
    """An entry of a file that follows from the fields, for those who read the file.

    Attributes
    ----------
    value : str or callable
        Attribute of the result, dots included, or a function of it.
    stored : type
        Type of the entry, as pydantic checks it.
    exact : bool
        Whether a file with another value is refused; not for values that differ by rounding between computers.
    """

    value: str | Callable[[Any], Any]
    stored: Any = Any
    exact: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    value : str or callable
        Attribute of the result with one entry per row, dots included, or a function of it.
    name : str
        Name in `to_frame`; "" where only text shows the column.
    heading : str
        Heading in text; "" where only `to_frame` has the column.
    form : str or callable
        Format of numbers in text, or a function; "" for words.
    dtype : type, optional
        Type of the column in `to_frame`, for columns that may be empty.
    """

    value: str | Callable[[Any], Any]
    name: str = ""
    heading: str = ""
    form: str | Callable[[Any], str] = ""
    dtype: Any = None


@dataclass(frozen=True)
class Table:
    """A table of a result. Declared fields of the same size with a `column` follow its own columns.

    Attributes
    ----------
    title : str or callable
        Title in text and notebooks, or a function of the result.
    size : str
        Name of the dimension that the rows run over.
    columns : tuple of Column
    note : callable, optional
        A sentence below the table in notebooks.
    """

    title: str | Callable[[Any], str]
    size: str
    columns: tuple[Column, ...]
    note: Callable[[Any], str] | None = None


class Result:
    """Base of results: plain data, files, tables and documentation from the declaration of their fields."""

    __slots__ = ()
    # The attribute that has as many entries, and what they are called, by name of the dimension.
    sizes: ClassVar[Mapping[str, tuple[str, str]]] = types.MappingProxyType({})
    # Entries of the file that follow from the fields.
    views: ClassVar[Mapping[str, View]] = types.MappingProxyType({})
    tables: ClassVar[tuple[Table, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declared = {
            name: value.metadata[_KEY]
            for name, value in vars(cls).items()
            if isinstance(value, Field) and _KEY in value.metadata
        }
        if declared:
            types_of = inspect.get_annotations(cls)
            lines = ["Attributes", "----------"]
            for name, settings in declared.items():
                lines += [f"{name} : {_type_words(types_of[name], settings['size'])}", f"    {_described(settings)}"]
            named = ", ".join(c.name for c in cls.tables[0].columns if c.name) if cls.tables else ""
            table = [f"The table of `to_frame` has the columns {named}.", ""] if named else []
            cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or ""), "", *table, *lines])

    def fault(self) -> str:
        """What is wrong with the fields together, for files; "" where nothing is."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data that JSON can hold.

        Returns
        -------
        dict
            Every field; numbers that are not finite are the words nan and inf.
        """
        return to_plain(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a result from what `to_dict` returned.

        Parameters
        ----------
        data : mapping
            Plain data.

        Returns
        -------
        Result

        Raises
        ------
        DataError
            If a field is missing, unknown or wrong; the first is named.
        """
        found: Self = from_plain(cls, data, Reading("the data"))
        return found

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON schema of the saved fields.

        Returns
        -------
        dict
        """
        return _schema(cls).model_json_schema()

    def to_frame(self) -> pl.DataFrame:
        """The first table of the result, or its fields where it has none.

        Returns
        -------
        polars.DataFrame
            With the columns that the documentation of the class names, or field, value and unit.
        """
        import polars as pl

        if not self.tables:
            return pl.DataFrame(_record(self), schema={"field": str, "value": str, "unit": str}, orient="row")
        columns = _columns(self, self.tables[0])
        return pl.DataFrame([pl.Series(c.name, list(value_of(self, c.value)), c.dtype) for c in columns if c.name])

    def summary(self) -> str:
        """The tables of the result as text, as wide as the terminal.

        Returns
        -------
        str
        """
        return rendered(*text_tables(self))

    def _repr_html_(self) -> str:
        if not self.tables:
            return frame_html(words_of(type(self).__name__), self.to_frame())
        return "".join(
            html_table(_title(self, t), *_text(self, t), "" if t.note is None else t.note(self)) for t in self.tables
        )


class SavedResult(Result):
    """Base of results that have a file of their own."""

    __slots__ = ()
    # Kind of the file, one of `dynid.saved.KINDS`.
    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data that JSON can hold: what `save` writes.

        Returns
        -------
        dict
            Kind and version of the file, then every field; numbers that are not finite are the words nan and inf.
        """
        return self.stored()

    def stored(self) -> dict[str, Any]:
        """What `save` writes; `from_dict` rebuilds the result from it.

        Returns
        -------
        dict
        """
        return envelope(self.kind) | to_plain(self)

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], given: Any = None, *, where: str = "the data", loader: str = ""
    ) -> Self:
        """Rebuild a result from what `stored` returned.

        Parameters
        ----------
        data : mapping
            Plain data.
        given : object, optional
            What a file cannot hold, such as a robot with Python functions.
        where : str
            Origin of the data, for messages.
        loader : str
            The function that was called, for messages.

        Returns
        -------
        Result

        Raises
        ------
        DataError
            If the data are of another kind or version, or a field is missing, unknown or wrong; the first is named.
        """
        reading = Reading(where, given, loader or f"{cls.__name__}.load")
        found: Self = from_plain(cls, opened(data, cls.kind, where), reading)
        return found

    def save(self, path: str | Path) -> None:
        """Write the complete result into one readable JSON file.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        write_saved(path, self.stored())

    @classmethod
    def load(cls, path: str | Path, robot: Any = None) -> Self:
        """Read a saved result.

        Parameters
        ----------
        path : str or Path
            A file that `save` wrote.
        robot : Robot, optional
            The robot of the result. Needed only if it has custom drive terms, whose Python functions a file cannot
            store. If given, it must have the same joints and drive terms as the stored one; its parameter values and
            the smoothness of its friction do not matter, the stored ones are used.

        Returns
        -------
        Result
            Equal to the saved one in every field.

        Raises
        ------
        DataError
            If the file does not exist, holds something else, is damaged, belongs to another robot than the one given,
            or needs a robot that is not given.
        """
        reading = Reading(f"'{path}'", robot, f"{cls.__name__}.load")
        found: Self = from_plain(cls, read_saved(path, cls.kind), reading)
        return found


# -- documentation -------------------------------------------------------------------------------------


def _type_words(annotation: Any, size: Sequence[str]) -> str:
    """A type as numpydoc writes it."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    for long, short in (("NDArray[np.bool_]", "ndarray of bool"), ("Array", "ndarray"), ("NDArray[Any]", "ndarray")):
        text = text.replace(long, short)
    if "ndarray" in text and size:
        kind = "ndarray of bool" if "ndarray of bool" in text else "ndarray"
        text = text.replace(kind, f"{kind}, shape ({', '.join(size)}{',' if len(size) == 1 else ''})", 1)
    if text.startswith("tuple[") and text.endswith(", ...]"):
        text = f"tuple of {text[6:-6]}"
    return text.replace(" | ", " or ")


def _described(settings: Mapping[str, Any]) -> str:
    meaning = " ".join(settings["meaning"].split())
    return f"{meaning.rstrip('.')}, in {settings['unit']}." if settings["unit"] else meaning


# -- plain data ----------------------------------------------------------------------------------------


def _number(value: Any) -> Any:
    """A stored number; text other than the words for what is not finite is none."""
    if isinstance(value, bool) or (isinstance(value, str) and value not in _WORDS):
        raise ValueError("must be a number")
    return value


Number = Annotated[float, BeforeValidator(_number)]
Finite = Annotated[float, BeforeValidator(_number), Bounds(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
# A variance may be infinite: of what the recording does not show.
_Variance = Annotated[float, BeforeValidator(_number), Bounds(ge=-math.inf)]
_Count = Annotated[int, Bounds(strict=True, ge=0)]
_Flag = Annotated[bool, Bounds(strict=True)]


class Stored(BaseModel):
    """Fields of a saved result by name; others than these are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def _same(value: Any) -> Any:
    return value


def _as_stored(value: Any, reading: Reading) -> Any:
    return value


def to_plain(result: Any) -> dict[str, Any]:
    """Every stored field of a dataclass as plain data, and the views of a result."""
    data = {name: codec.write(getattr(result, name)) for name, codec in _codecs(type(result)).items()}
    views = getattr(type(result), "views", {})
    out: dict[str, Any] = plain_data(data | {key: value_of(result, view.value) for key, view in views.items()})
    return out


def from_plain(cls: type[Any], data: Any, reading: Reading) -> Any:
    """Rebuild a dataclass from what `to_plain` returned; a DataError that names the first wrong field."""
    kind = getattr(cls, "kind", "")
    damaged = f"{reading.where} is a damaged {KINDS[kind].words}" if kind else f"{reading.where} is damaged"
    try:
        return _built(cls, _schema(cls).model_validate(data), reading)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        raise DamagedFile(f"{damaged}: {f'{place}: ' if place else ''}{reason}") from None
    except _Damaged as error:
        raise DamagedFile(f"{damaged}: {error}") from None


class _Damaged(Exception):
    """What is wrong with stored data, and in which field."""

    def __init__(self, reason: str, *place: str | int) -> None:
        super().__init__(f"{'.'.join(map(str, place))}: {reason}" if place else reason)
        self.reason, self.place = reason, place

    def inside(self, name: str | int) -> _Damaged:
        """The same, of a field inside of another one."""
        return _Damaged(self.reason, name, *self.place)


def _built(cls: type[Any], stored: Stored, reading: Reading) -> Any:
    """A dataclass from its checked data."""
    wrong = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, DynidError)
    found: dict[str, Any] = {}
    for name, codec in _codecs(cls).items():
        here = Reading(reading.where, reading.given, reading.loader, found)
        try:
            found[name] = codec.read(getattr(stored, name), here)
        except _Damaged as error:
            raise error.inside(name) from None
        except wrong as error:
            if codec.complete and isinstance(error, DynidError):
                raise
            raise _Damaged(_reason(error), name) from None
    try:
        result = cls(**found)
        fault = (_wrong_size(result) or result.fault()) if isinstance(result, Result) else ""
        fault = fault or _wrong_view(result, stored)
    except wrong as error:
        fault = _reason(error)
    if fault:
        raise _Damaged(fault)
    return result


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, DynidError | ValueError) else f"{type(error).__name__} {error}"


def value_of(result: Any, value: str | Callable[[Any], Any]) -> Any:
    """An attribute of a result, dots included, or a function of it."""
    if callable(value):
        return value(result)
    for name in value.split("."):
        result = getattr(result, name)
    return result


def _wrong_size(result: Result) -> str:
    """The first array or tuple that does not have its declared size.

    A size is a number, a name in `sizes` of the class, a name that all fields share, or "*" for any.
    """
    known: dict[str, tuple[int, str]] = {}
    for x in fields(result):  # type: ignore[arg-type]
        size, value = x.metadata.get(_KEY, _PLAIN)["size"], getattr(result, x.name)
        if not size or value is None or (isinstance(value, tuple) and value == x.default):
            continue
        shape = value.shape if isinstance(value, np.ndarray) else (len(value),)
        for one, count in zip(size, shape, strict=True):
            if one in known or one == "*":
                continue
            path, word = type(result).sizes.get(one, ("", f"of {x.name}"))
            wanted = int(one) if one.isdigit() else len(value_of(result, path)) if path else count
            known[one] = (wanted, "" if one.isdigit() else word)
        if all(one == "*" or known[one][0] == count for one, count in zip(size, shape, strict=True)):
            continue
        if len(size) == 1:
            return f"{x.name} has {shape[0]} entries for {' '.join(map(str, known[size[0]])).strip()}"
        return f"{x.name} is not a {' x '.join('any' if s == '*' else str(known[s][0]) for s in size)} matrix"
    return ""


def _wrong_view(result: Any, stored: Stored) -> str:
    """The first entry that does not follow from the fields."""
    for key, view in getattr(type(result), "views", {}).items():
        if view.exact and plain_data(value_of(result, view.value)) != getattr(stored, key):
            return f"{key}: it does not follow from the other fields"
    return ""


_SCHEMAS: dict[type, type[Stored]] = {}
_CODECS: dict[type, dict[str, Codec]] = {}


def _schema(cls: type[Any]) -> type[Stored]:
    """The schema of the stored fields of a dataclass."""
    if cls in _SCHEMAS:
        return _SCHEMAS[cls]
    entries: dict[str, Any] = {name: (codec.stored, ...) for name, codec in _codecs(cls).items()}
    entries |= {key: (view.stored, ...) for key, view in getattr(cls, "views", {}).items()}
    made: type[Stored] = create_model(f"Stored{cls.__name__}", __base__=Stored, **entries)
    _SCHEMAS[cls] = made
    return made


def _codecs(cls: type[Any]) -> dict[str, Codec]:
    """How each stored field of a dataclass is stored."""
    if cls in _CODECS:
        return _CODECS[cls]
    hints = get_type_hints(cls)
    out: dict[str, Codec] = {}
    for x in fields(cls):
        settings = x.metadata.get(_KEY, _PLAIN)
        if settings["stored"]:
            out[x.name] = _codec(hints[x.name], settings)
        elif x.default is MISSING and x.default_factory is MISSING:
            raise TypeError(f"{cls.__name__}.{x.name} is not stored and has no default")
    _CODECS[cls] = out
    return out


def _codec(hint: Any, settings: Mapping[str, Any]) -> Codec:
    """How values of a type are stored."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        others = [x for x in inner if x is not type(None)]
        if len(others) != 1 or len(others) == len(inner):
            raise TypeError(f"values of {hint} cannot be stored: give the field a codec")
        one = settings["codec"] or _codec(others[0], settings)
        return Codec(
            one.stored | None,
            lambda value: None if value is None else one.write(value),
            lambda value, reading: None if value is None else one.read(value, reading),
            one.complete,
        )
    if settings["codec"] is not None:
        given: Codec = settings["codec"]
        return given
    if origin is np.ndarray:
        return _array_codec(np.dtype(get_args(inner[1])[0]), settings)
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            one = _codec(inner[0], settings)
            many = Annotated[list[one.stored], Bounds(min_length=settings["least"])]  # type: ignore[name-defined]
            return Codec(
                many,
                lambda value: [one.write(x) for x in value],
                lambda value, reading: tuple(_entry(one, k, x, reading) for k, x in enumerate(value)),
            )
        parts = [_codec(x, settings) for x in inner]
        return Codec(
            tuple[tuple(x.stored for x in parts)],  # type: ignore[misc]
            lambda value: [x.write(v) for x, v in zip(parts, value, strict=True)],
            lambda value, reading: tuple(x.read(v, reading) for x, v in zip(parts, value, strict=True)),
        )
    if origin in (dict, Mapping):
        one = _codec(inner[1], settings)
        table: Any = dict
        return Codec(
            table[inner[0], one.stored],
            lambda value: {str(key): one.write(x) for key, x in value.items()},
            lambda value, reading: {key: one.read(x, reading) for key, x in value.items()},
        )
    if origin is Literal:
        return Codec(hint, _same, _as_stored)
    if isinstance(hint, type):
        return _class_codec(hint, settings)
    raise TypeError(f"values of {hint} cannot be stored: give the field a codec")


def _entry(codec: Codec, k: int, value: Any, reading: Reading) -> Any:
    """One entry of a list, named by its number where it is damaged."""
    try:
        return codec.read(value, reading)
    except _Damaged as error:
        raise error.inside(k) from None


def _class_codec(cls: type[Any], settings: Mapping[str, Any]) -> Codec:
    """How values of a class are stored."""
    simple = {bool: _Flag, int: _Count, float: Finite if settings["finite"] else Number, str: str}
    if cls in simple:
        return Codec(simple[cls], cls, _as_stored)
    if cls is datetime:
        return Codec(datetime, datetime.isoformat, _as_stored)
    if issubclass(cls, Enum):
        return Codec(cls, lambda value: value.value, _as_stored)
    if issubclass(cls, str):  # a code that knows its meaning
        return Codec(str, str, lambda value, reading: cls(value))
    if issubclass(cls, BaseModel):
        return Codec(
            dict[str, Any],
            lambda value: value.model_dump(mode="json"),
            lambda value, reading: cls.model_validate(value),
        )
    if issubclass(cls, SavedResult):
        whole: type[SavedResult] = cls
        return Codec(
            dict[str, Any],
            lambda value: value.stored(),
            lambda value, reading: whole.from_dict(value, reading.given, where=reading.where, loader=reading.loader),
            complete=True,
        )
    if issubclass(cls, Result) or (is_dataclass(cls) and not hasattr(cls, "from_dict")):
        return Codec(_schema(cls), to_plain, lambda value, reading: _built(cls, value, reading))
    if hasattr(cls, "from_dict"):
        plain: Any = cls
        return Codec(dict[str, Any], lambda value: value.to_dict(), lambda value, reading: plain.from_dict(value))
    raise TypeError(f"values of {cls.__name__} cannot be stored: give the field a codec")


def _array_codec(dtype: np.dtype[Any], settings: Mapping[str, Any]) -> Codec:
    """Arrays as nested lists, with as many levels as the field has sizes."""
    if settings["size"] is None:
        return Codec(
            list[Any],
            lambda value: np.asarray(value).tolist(),
            lambda value, reading: np.array([_number(x) for x in value] if dtype.kind == "f" else value, dtype=dtype),
        )
    dimensions = max(len(settings["size"]), 1)
    entry: Any = {"b": _Flag, "i": int}.get(dtype.kind, Finite if settings["finite"] else Number)
    if entry is Number and dimensions == 2 and settings["size"][0] == settings["size"][1]:
        entry = _Variance  # a covariance
    stored: Any = entry
    for _ in range(dimensions):
        stored = list[stored]

    def read(value: Any, reading: Reading) -> Any:
        found = np.array(value, dtype=dtype)
        return found if found.ndim == dimensions else found.reshape((0,) * dimensions)

    return Codec(stored, lambda value: np.asarray(value).tolist(), read)


# -- tables --------------------------------------------------------------------------------------------


def _columns(result: Any, table: Table) -> list[Column]:
    """The columns of a table, those of declared fields of its size at the end."""
    own = list(table.columns)
    for x in fields(result):
        settings = x.metadata.get(_KEY, _PLAIN)
        if settings["column"] and settings["size"] == (table.size,) and getattr(result, x.name) is not None:
            own.append(Column(x.name, x.name, x.name.replace("_", " "), settings["column"]))
    return own


def _title(result: Any, table: Table) -> str:
    return table.title(result) if callable(table.title) else table.title


def _text(result: Any, table: Table) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a table as text."""
    columns = [c for c in _columns(result, table) if c.heading]
    cells = [[_cell(value, c.form) for value in value_of(result, c.value)] for c in columns]
    return [c.heading for c in columns], [list(row) for row in zip(*cells, strict=True)]


def _cell(value: Any, form: str | Callable[[Any], str]) -> str:
    if callable(form):
        return form(value)
    return f"{value:{form}}" if form else str(value)


def framed(**columns: str | Callable[[Any], Any]) -> tuple[Column, ...]:
    """Columns that text and `to_frame` show alike, by name."""
    return tuple(Column(value, name, name, decimals) for name, value in columns.items())


def of_each(items: str, **types: type) -> tuple[Column, ...]:
    """Columns with an attribute of each entry of a tuple, one row per entry; codes are shown as words."""

    def values(name: str) -> Callable[[Any], list[Any]]:
        return lambda result: [_word(getattr(one, name)) for one in value_of(result, items)]

    return tuple(Column(values(name), name, name, decimals, dtype) for name, dtype in types.items())


def _word(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def decimals(value: Any) -> str:
    """A number with five digits, "-" where there is none; yes or no; other values as they are."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _record(result: Any) -> list[tuple[str, str, str]]:
    """Name, value and unit of each declared field."""
    return [
        (x.name, _brief(getattr(result, x.name)), x.metadata[_KEY]["unit"])
        for x in fields(result)
        if _KEY in x.metadata
    ]


def _brief(value: Any) -> str:
    """A value in one line: short lists of numbers and words, and how long others are."""
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.ndim == 1 else (None,) * value.size
    if not isinstance(value, list | tuple | Mapping):
        return decimals(_word(value))
    plain = not isinstance(value, Mapping) and all(isinstance(x, str | float | int) for x in value)
    return ", ".join(map(decimals, value)) if plain and len(value) <= _SHORT else f"{len(value)} entries"


def text_tables(result: Result) -> list[Shown]:
    """The tables of a result for the terminal, or a table of its fields where it has none."""
    if not result.tables:
        whole = table_of(words_of(type(result).__name__), "field", "value", "unit", text=("field", "value", "unit"))
        for line in _record(result):
            whole.add_row(*line)
        return [whole]
    out = []
    for table in result.tables:
        words = tuple(c.heading for c in _columns(result, table) if not c.form)
        headings, rows = _text(result, table)
        shown = table_of(_title(result, table), *headings, text=words)
        for row in rows:
            shown.add_row(*row)
        out.append(shown)
    return out
