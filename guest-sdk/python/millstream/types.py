"""Types of columns: as annotations, as fields of a schema, and as buffers.

A column is read as a list with `None` where it is null, and written from one. Layout: Arrow's, see `wit/README.md`.
"""

import dataclasses
import datetime as _datetime
import decimal as _decimal
import types as _types
import typing
from array import array
from itertools import accumulate
from typing import Annotated, Any, List, Optional, Tuple

_START = _datetime.datetime(1970, 1, 1, tzinfo=_datetime.timezone.utc)
_DAY = _datetime.date(1970, 1, 1).toordinal()
_MICROSECOND = _datetime.timedelta(microseconds=1)
_EXACT = _decimal.Context(prec=80, rounding=_decimal.ROUND_HALF_UP, Emax=999999, Emin=-999999)

# A node of a schema: name, format, nullable, number of children.
Node = Tuple[str, str, bool, int]


class Reader:
    """The buffers of a batch, from the first."""

    def __init__(self, buffers):
        self._next = iter(buffers)

    def buffer(self) -> bytes:
        return next(self._next)


def bits(data: bytes, rows: int) -> str:
    """A bitmap as a text of `0` and `1`, the first row first."""
    if not rows:
        return ""
    return format(int.from_bytes(data, "little"), f"0{8 * len(data)}b")[::-1][:rows]


def bitmap(flags) -> bytes:
    """The bitmap of true and false."""
    text = "".join(["1" if flag else "0" for flag in flags])
    return int(text[::-1], 2).to_bytes((len(text) + 7) // 8, "little") if text else b""


def validity(values: list) -> bytes:
    """The validity of a column: nothing when there are no nulls."""
    for value in values:
        if value is None:
            return bitmap([value is not None for value in values])
    return b""


def with_nulls(values: list, valid: bytes) -> list:
    """The values, `None` where the bitmap says so."""
    if not valid:
        return values
    return [value if bit == "1" else None for value, bit in zip(values, bits(valid, len(values)))]


class Type:
    """A type of a column."""

    format = ""
    is_nested = False

    def nodes(self, name: str, nullable: bool) -> List[Node]:
        """The fields in pre-order."""
        return [(name, self.format, nullable, 0)]

    def read(self, reader: Reader, rows: int) -> list:
        """The next column of so many rows."""
        raise NotImplementedError

    def write(self, values: list, nullable: bool, out: List[bytes]) -> None:
        """Appends the buffers of a column. Raises when a value does not fit."""
        raise NotImplementedError

    def view(self, reader: Reader, rows: int):
        """The next column without nulls, in the form that is quickest to make."""
        return self.read(reader, rows)


def _not_null(values: list, nullable: bool) -> None:
    if not nullable and any(value is None for value in values):
        raise TypeError("None where no null may be")


class Fixed(Type):
    """Numbers of a width that `array` and `memoryview` know."""

    def __init__(self, format: str, code: str):
        self.format = format
        self.code = code

    def view(self, reader, rows):
        reader.buffer()
        return memoryview(reader.buffer()).cast(self.code) if rows else []

    def read(self, reader, rows):
        valid = reader.buffer()
        data = reader.buffer()
        return with_nulls(memoryview(data).cast(self.code).tolist() if rows else [], valid)

    def write(self, values, nullable, out):
        try:
            # Most columns have no nulls: no value is looked at twice.
            data = array(self.code, values)
            out.append(b"")
        except TypeError:
            _not_null(values, nullable)
            data = array(self.code, [0 if value is None else value for value in values])
            out.append(validity(values))
        out.append(data.tobytes())


class Boolean(Type):
    format = "b"

    def read(self, reader, rows):
        valid = reader.buffer()
        return with_nulls([bit == "1" for bit in bits(reader.buffer(), rows)], valid)

    def write(self, values, nullable, out):
        _not_null(values, nullable)
        for value in values:
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"{value!r} is not a bool")
        out.append(validity(values))
        out.append(bitmap(values))


class Utf8(Type):
    format = "u"

    def read(self, reader, rows):
        valid = reader.buffer()
        ends = memoryview(reader.buffer())
        data = reader.buffer()
        if not rows:
            return []
        ends = ends.cast("i")
        text = data.decode()
        if len(text) == len(data):
            values = [text[ends[row] : ends[row + 1]] for row in range(rows)]
        else:
            values = [data[ends[row] : ends[row + 1]].decode() for row in range(rows)]
        return with_nulls(values, valid)

    def write(self, values, nullable, out):
        valid = validity(values)
        if valid:
            _not_null(values, nullable)
            values = ["" if value is None else value for value in values]
        text = "".join(values)
        data = text.encode()
        if len(text) == len(data):
            lengths = map(len, values)
        else:
            lengths = [len(value.encode()) for value in values]
        out += [valid, array("i", accumulate(lengths, initial=0)).tobytes(), data]


class Binary(Type):
    format = "z"

    def read(self, reader, rows):
        valid = reader.buffer()
        ends = memoryview(reader.buffer())
        data = reader.buffer()
        if not rows:
            return []
        ends = ends.cast("i")
        return with_nulls([data[ends[row] : ends[row + 1]] for row in range(rows)], valid)

    def write(self, values, nullable, out):
        valid = validity(values)
        if valid:
            _not_null(values, nullable)
            values = [b"" if value is None else value for value in values]
        out += [valid, array("i", accumulate(map(len, values), initial=0)).tobytes(), b"".join(values)]


class Converted(Type):
    """Another type's values as objects of Python."""

    def __init__(self, inner: Type, of_inner, to_inner):
        self.inner = inner
        self.format = inner.format
        self._of_inner = of_inner
        self._to_inner = to_inner

    def read(self, reader, rows):
        convert = self._of_inner
        return [None if value is None else convert(value) for value in self.inner.read(reader, rows)]

    def write(self, values, nullable, out):
        convert = self._to_inner
        self.inner.write([None if value is None else convert(value) for value in values], nullable, out)


class Decimal(Type):
    def __init__(self, precision: int, scale: int):
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise ValueError(f"there is no decimal({precision}, {scale})")
        self.format = f"d:{precision},{scale}"
        self.scale = scale
        self.limit = 10**precision

    def read(self, reader, rows):
        valid = reader.buffer()
        data = reader.buffer()
        scale = -self.scale
        from_bytes = int.from_bytes
        values = [
            _decimal.Decimal(from_bytes(data[at : at + 16], "little", signed=True)).scaleb(scale, _EXACT)
            for at in range(0, 16 * rows, 16)
        ]
        return with_nulls(values, valid)

    def _unscaled(self, value) -> bytes:
        if value is None:
            return bytes(16)
        if isinstance(value, float) or not isinstance(value, (int, _decimal.Decimal)):
            raise TypeError(f"{value!r} is not a Decimal")
        value = _decimal.Decimal(value)
        if not value.is_finite():
            raise ValueError(f"{value} does not fit {self.format}")
        unscaled = int(value.scaleb(self.scale, _EXACT).to_integral_value(_decimal.ROUND_HALF_UP, _EXACT))
        if not -self.limit < unscaled < self.limit:
            raise ValueError(f"{value} does not fit {self.format}")
        return unscaled.to_bytes(16, "little", signed=True)

    def write(self, values, nullable, out):
        _not_null(values, nullable)
        out += [validity(values), b"".join(map(self._unscaled, values))]


class ListOf(Type):
    format = "+l"
    is_nested = True

    def __init__(self, element: Type, nullable: bool):
        self.element = element
        self.nullable = nullable

    def nodes(self, name, nullable):
        # In SQL any array may have a null; one that does is null where elements cannot be.
        return [(name, "+l", nullable, 1), *self.element.nodes("item", True)]

    def read(self, reader, rows):
        valid = reader.buffer()
        ends = memoryview(reader.buffer())
        ends = ends.cast("i") if rows else [0]
        elements = self.element.read(reader, ends[-1])
        values = [elements[ends[row] : ends[row + 1]] for row in range(rows)]
        if not self.nullable and any(element is None for element in elements):
            values = [None if any(element is None for element in value) else value for value in values]
        return with_nulls(values, valid)

    def write(self, values, nullable, out):
        _not_null(values, nullable)
        lengths = [0 if value is None else len(value) for value in values]
        out += [validity(values), array("i", accumulate(lengths, initial=0)).tobytes()]
        elements = [element for value in values if value is not None for element in value]
        self.element.write(elements, self.nullable, out)


class Struct(Type):
    format = "+s"
    is_nested = True

    def __init__(self, made: type):
        self.made = made
        hints = typing.get_type_hints(made, include_extras=True)
        self.fields = [(field.name, *type_of(hints[field.name])) for field in dataclasses.fields(made)]
        if not self.fields:
            raise TypeError(f"{made.__name__} has no fields")

    def nodes(self, name, nullable):
        return [(name, "+s", nullable, len(self.fields)), *self.columns()]

    def columns(self) -> List[Node]:
        """The fields as columns."""
        return [node for name, field, nullable in self.fields for node in field.nodes(name, nullable)]

    def read(self, reader, rows):
        valid = reader.buffer()
        return with_nulls(self.read_columns(reader, rows), valid)

    def read_columns(self, reader: Reader, rows: int) -> list:
        """One object per row, of the fields as columns; None where a field is null that cannot be."""
        columns = [field.read(reader, rows) for _, field, _ in self.fields]
        values = list(map(self.made, *columns))
        for column, (_, _, nullable) in zip(columns, self.fields):
            if not nullable and any(value is None for value in column):
                values = [None if part is None else value for value, part in zip(values, column)]
        return values

    def write(self, values, nullable, out):
        _not_null(values, nullable)
        valid = validity(values)
        out.append(valid)
        self.write_columns(values, out)

    def write_columns(self, values: list, out: List[bytes]) -> None:
        """The fields of each object as columns. Nothing is asked of the fields of null objects."""
        for value in values:
            if value is not None and not isinstance(value, self.made):
                raise TypeError(f"{value!r} is not a {self.made.__name__}")
        has_nulls = any(value is None for value in values)
        for name, field, nullable in self.fields:
            column = [None if value is None else getattr(value, name) for value in values]
            if has_nulls and not nullable:
                _not_null([c for c, value in zip(column, values) if value is not None], False)
                nullable = True
            field.write(column, nullable, out)


_INT64 = Fixed("l", "q")
_INT32_DATE = Fixed("tdD", "i")
_TIMESTAMP = Fixed("tsu:UTC", "q")


def _from_datetime(value: _datetime.datetime) -> int:
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    return (value - _START) // _MICROSECOND


boolean = Annotated[bool, Boolean()]
int8 = Annotated[int, Fixed("c", "b")]
int16 = Annotated[int, Fixed("s", "h")]
int32 = Annotated[int, Fixed("i", "i")]
int64 = Annotated[int, _INT64]
uint8 = Annotated[int, Fixed("C", "B")]
uint16 = Annotated[int, Fixed("S", "H")]
uint32 = Annotated[int, Fixed("I", "I")]
uint64 = Annotated[int, Fixed("L", "Q")]
float32 = Annotated[float, Fixed("f", "f")]
float64 = Annotated[float, Fixed("g", "d")]
utf8 = Annotated[str, Utf8()]
binary = Annotated[bytes, Binary()]
date = Annotated[int, _INT32_DATE]
"""Days since 1970. `datetime.date` does as well, for the years that it has."""
timestamp = Annotated[int, _TIMESTAMP]
"""Microseconds since 1970, UTC. `datetime.datetime` does as well, for the years that it has."""
local_timestamp = Annotated[int, Fixed("tsu:", "q")]
"""Microseconds since 1970, of a clock on some wall."""


def decimal(precision: int, scale: int) -> Any:
    """A `decimal.Decimal` of so many digits, so many of them behind the point. Results are rounded to that, half up."""
    return Annotated[_decimal.Decimal, Decimal(precision, scale)]


_PLAIN = {
    bool: Boolean(),
    int: _INT64,
    float: Fixed("g", "d"),
    str: Utf8(),
    bytes: Binary(),
    _datetime.date: Converted(
        _INT32_DATE, lambda days: _datetime.date.fromordinal(_DAY + days), lambda day: day.toordinal() - _DAY
    ),
    _datetime.datetime: Converted(
        _TIMESTAMP, lambda us: _START + _datetime.timedelta(microseconds=us), _from_datetime
    ),
}


def type_of(hint) -> Tuple[Type, bool]:
    """The type that an annotation names, and whether it may be null."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        for extra in hint.__metadata__:
            if isinstance(extra, Type):
                return extra, False
        return type_of(hint.__origin__)
    if origin is typing.Union or origin is getattr(_types, "UnionType", None):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        if len(members) == 1 and len(typing.get_args(hint)) == 2:
            return type_of(members[0])[0], True
        raise TypeError(f"{hint} is no type of SQL: a union is a type and None")
    if origin is list:
        element, nullable = type_of(typing.get_args(hint)[0])
        return ListOf(element, nullable), False
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return Struct(hint), False
    if hint in _PLAIN:
        return _PLAIN[hint], False
    if hint is _decimal.Decimal:
        raise TypeError("a Decimal needs its digits: decimal(38, 10)")
    raise TypeError(f"{hint!r} is no type of SQL")


def columns_of(hint) -> "Columns":
    """The columns of a row: the fields of a dataclass, or one column of any other type."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return Columns(Struct(hint), None, True)
    kind, nullable = type_of(hint)
    return Columns(kind, "value", nullable)


class Columns:
    """Rows as columns: those of a dataclass, or a single one."""

    def __init__(self, type: Type, name: Optional[str], nullable: bool):
        self.type = type
        self.name = name
        self.nullable = nullable

    def nodes(self) -> List[Node]:
        return self.type.columns() if self.name is None else self.type.nodes(self.name, self.nullable)

    def read(self, reader: Reader, rows: int) -> list:
        return self.type.read_columns(reader, rows) if self.name is None else self.type.read(reader, rows)

    def write(self, values: list, out: List[bytes]) -> None:
        if self.name is None:
            for value in values:
                if value is None:
                    raise TypeError("None is no row")
            self.type.write_columns(values, out)
        else:
            self.type.write(values, self.nullable, out)


_ANY = {kind.format: kind for kind in (Boolean(), Utf8(), Binary(), _INT64, _INT32_DATE, _TIMESTAMP)} | {
    format: Fixed(format, code)
    for format, code in (
        ("c", "b"), ("s", "h"), ("i", "i"), ("C", "B"), ("S", "H"), ("I", "I"), ("L", "Q"), ("f", "f"), ("g", "d"),
        ("tsu:", "q"),
    )
}


class AnyStruct(Type):
    """A struct as a dictionary."""

    format = "+s"
    is_nested = True

    def __init__(self, fields: List[Tuple[str, Type]]):
        self.fields = fields

    def read(self, reader, rows):
        valid = reader.buffer()
        names = [name for name, _ in self.fields]
        columns = [kind.read(reader, rows) for _, kind in self.fields]
        return with_nulls([dict(zip(names, values)) for values in zip(*columns)], valid)


def type_of_nodes(nodes: List[Node]) -> List[Tuple[str, Type]]:
    """The types of fields in pre-order, for reading: dates and timestamps are numbers, structs dictionaries."""
    rest = iter(nodes)

    def field(node: Node) -> Tuple[str, Type]:
        name, format, _, children = node
        inner = [field(next(rest)) for _ in range(children)]
        if format == "+l":
            return name, ListOf(inner[0][1], True)
        if format == "+s":
            return name, AnyStruct(inner)
        if format.startswith("d:"):
            return name, Decimal(*(int(number) for number in format[2:].split(",")))
        return name, _ANY[format]

    return [field(node) for node in rest]
