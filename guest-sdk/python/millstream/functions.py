"""Scalar and table functions: from annotations to columns, and the loop over the rows."""

import collections.abc
import inspect
import typing
from array import array
from itertools import repeat, starmap
from typing import List, Optional, Tuple

from . import offered
from .errors import CallError, text_of
from .types import Columns, Reader, Type, columns_of, type_of

RowErrors = List[Tuple[int, str]]

_SEQUENCES = (collections.abc.Sequence, list)
_ROWS = (
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.Generator,
    collections.abc.Sequence,
    list,
)


class Arguments:
    """The arguments of a function: names, types, and which of them take nulls."""

    def __init__(self, of: str, hints: list, batch: bool = False):
        self.fields = []
        for name, hint in hints:
            if batch:
                if typing.get_origin(hint) is not collections.abc.Sequence:
                    raise TypeError(f"{of}: an argument of a batch function is a Sequence of something, not {hint!r}")
                hint = typing.get_args(hint)[0]
            self.fields.append((offered.sql_name(name.lstrip("_")), *type_of(hint)))
        # The host leaves out rows with nulls that nobody asked for; where somebody did, that is done here.
        self.required = [at for at, (_, _, nullable) in enumerate(self.fields) if not nullable]
        self.sees_nulls = len(self.required) < len(self.fields)
        # Nulls inside of lists and structs are for nobody else to see.
        self.guarded = [at for at in self.required if self.sees_nulls or self.fields[at][1].is_nested]

    def nodes(self):
        return [node for name, kind, nullable in self.fields for node in kind.nodes(name, nullable)]

    def read(self, reader: Reader, rows: int) -> list:
        if self.sees_nulls:
            return [kind.read(reader, rows) for _, kind, _ in self.fields]
        return [kind.view(reader, rows) for _, kind, _ in self.fields]

    def rows(self, columns: list, rows: int):
        """The arguments of each row."""
        return zip(*columns) if columns else repeat((), rows)

    def guard(self, function):
        """The function, `None` for rows with a null that it does not take."""
        if not self.guarded:
            return function
        required = self.guarded

        def guarded(*row):
            for at in required:
                if row[at] is None:
                    return None
            return function(*row)

        return guarded


def hints_of(function) -> Tuple[list, object]:
    """The annotations of the arguments, in their order, and of the result."""
    hints = typing.get_type_hints(function, include_extras=True)
    arguments = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"{function.__name__}: an argument of a plugin function is a plain one, not {parameter}")
        if parameter.name not in hints:
            raise TypeError(f"{function.__name__}: the argument {parameter.name} has no type")
        arguments.append((parameter.name, hints[parameter.name]))
    if "return" not in hints:
        raise TypeError(f"{function.__name__}: the result has no type")
    return arguments, hints["return"]


def encode(kind: Type, nullable: bool, values: list, errors: RowErrors) -> List[bytes]:
    """One value per row as a column. Values that do not fit become row errors and nulls."""
    buffers: List[bytes] = []
    try:
        kind.write(values, nullable, buffers)
        return buffers
    except Exception:
        buffers = []
    failed = {row for row, _ in errors}
    for row, value in enumerate(values):
        try:
            if row not in failed:
                kind.write([value], nullable, [])
        except Exception as error:
            errors.append((row, _misfit(error)))
            values[row] = None
    errors.sort()
    kind.write(values, True, buffers)
    return buffers


def _misfit(error: Exception) -> str:
    return f"{type(error).__name__}: the result does not fit its type: {error}"


class Function:
    """A function that SQL calls."""

    def __init__(self, function, name: Optional[str], volatile: bool, batch: bool):
        self.function = function
        self.name = offered.sql_name(name or function.__name__)
        self.volatile = volatile
        self.batch = batch
        hints, self.returned = hints_of(function)
        self.arguments = Arguments(self.name, hints, batch)


class Scalar(Function):
    is_table = False

    def __init__(self, *options):
        super().__init__(*options)
        returned = self.returned
        if self.batch:
            if typing.get_origin(returned) not in _SEQUENCES:
                raise TypeError(f"{self.name}: a batch function returns a Sequence of something")
            returned = typing.get_args(returned)[0]
        # The result may be null whatever the annotation says: rows fail.
        self.result, self.nullable = type_of(returned)

    def results(self):
        return self.result.nodes("value", True)

    def call(self, rows: int, buffers: list) -> Tuple[List[bytes], RowErrors]:
        columns = self.arguments.read(Reader(buffers), rows)
        errors: RowErrors = []
        if self.batch:
            values = self.function(*columns)
            if len(values) != rows:
                raise ValueError(f"{self.name} returned {len(values)} values for {rows} rows")
            values = values if isinstance(values, (list, array)) else list(values)
        else:
            values = []
            todo = starmap(self.arguments.guard(self.function), self.arguments.rows(columns, rows))
            # `extend` keeps what it has when a row raises, and goes on with the next row.
            while True:
                try:
                    values.extend(todo)
                    break
                except CallError:
                    raise
                except BaseException as error:
                    errors.append((len(values), text_of(error)))
                    values.append(None)
        return encode(self.result, True, values, errors), errors


class Table(Function):
    is_table = True

    def __init__(self, function, name, volatile, batch, column):
        super().__init__(function, name, volatile, batch)
        if typing.get_origin(self.returned) not in _ROWS:
            raise TypeError(f"{self.name}: a table function returns an Iterator or list of something")
        self.columns: Columns = columns_of(typing.get_args(self.returned)[0])
        if self.columns.name is not None:
            self.columns.name = offered.sql_name(column or "value")

    def results(self):
        return self.columns.nodes()

    def call(self, rows: int, buffers: list) -> Tuple[array, int, List[bytes], RowErrors]:
        columns = self.arguments.read(Reader(buffers), rows)
        function = self.arguments.guard(self.function)
        errors: RowErrors = []
        values: list = []
        counts = []
        row = -1
        for row, arguments in enumerate(self.arguments.rows(columns, rows)):
            before = len(values)
            try:
                made = function(*arguments)
                if made is not None:
                    values.extend(made)
            except CallError:
                raise
            except BaseException as error:
                del values[before:]
                errors.append((row, text_of(error)))
            counts.append(len(values) - before)
        out: List[bytes] = []
        try:
            self.columns.write(values, out)
        except Exception:
            values, counts = self._without_misfits(values, counts, errors)
            out = []
            self.columns.write(values, out)
        numbers = array("I")
        for row, count in enumerate(counts):
            if count == 1:
                numbers.append(row)
            elif count:
                numbers.extend(repeat(row, count))
        return numbers, len(values), out, errors

    def _without_misfits(self, values: list, counts: list, errors: RowErrors) -> Tuple[list, list]:
        kept, left, start = [], [], 0
        for row, count in enumerate(counts):
            part = values[start : start + count]
            start += count
            try:
                self.columns.write(part, [])
                kept.extend(part)
                left.append(count)
            except Exception as error:
                errors.append((row, _misfit(error)))
                left.append(0)
        errors.sort()
        return kept, left


def scalar_function(function=None, *, name: Optional[str] = None, volatile: bool = False, batch: bool = False):
    """Makes a function callable from SQL: n rows in, n values out.

    With `batch` it is called once for many rows, with a sequence per argument, and returns a sequence of as many values.
    It stays an ordinary function.
    """

    def decorate(function):
        offered.offer(offered.functions, Scalar(function, name, volatile, batch))
        return function

    return decorate if function is None else decorate(function)


def table_function(function=None, *, name: Optional[str] = None, column: Optional[str] = None, volatile: bool = False):
    """Makes a function callable from SQL that gives any number of rows per row.

    A dataclass has its fields as columns; every other type is one column, called `column`. It stays an ordinary function.
    """

    def decorate(function):
        offered.offer(offered.functions, Table(function, name, volatile, False, column))
        return function

    return decorate if function is None else decorate(function)
