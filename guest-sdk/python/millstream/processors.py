"""Stateful processors: classes that see all rows of a key together with what they stored under that key before."""

import dataclasses
from array import array
from typing import Any, Iterator, List, Optional, Tuple

from . import offered
from .errors import CallError, text_of
from .types import Columns, Reader, columns_of

VALUE, LIST, MAP = "value", "list", "map"


class Variable:
    """A state variable, as it is declared in the class."""

    def __init__(self, kind: str, columns: Any, map_key: Any, state_id: str, ttl_ms: Optional[int]):
        self.kind = kind
        self.columns: Columns = columns_of(columns)
        self.map_key: Optional[Columns] = None if map_key is None else columns_of(map_key)
        self.state_id = state_id
        self.ttl_ms = ttl_ms
        self.name = ""

    def __set_name__(self, owner, name):
        self.name = name


def value_state(columns: Any, *, state_id: str = "1", ttl_ms: Optional[int] = None) -> Any:
    """One row or none per key. A row is a dataclass, or a value of one column."""
    return Variable(VALUE, columns, None, state_id, ttl_ms)


def list_state(columns: Any, *, state_id: str = "1", ttl_ms: Optional[int] = None) -> Any:
    """Any number of rows per key, in the order in which they were appended."""
    return Variable(LIST, columns, None, state_id, ttl_ms)


def map_state(map_key: Any, columns: Any, *, state_id: str = "1", ttl_ms: Optional[int] = None) -> Any:
    """Any number of rows per key, each under a map key of its own."""
    return Variable(MAP, columns, map_key, state_id, ttl_ms)


class ValueState:
    """A value of one key."""

    def __init__(self, entries: list):
        self._row = entries[0][1] if entries else None
        self._cleared = False
        self._put = False

    def get(self, default=None):
        """The row, or the default where there is none."""
        return default if self._row is None else self._row

    def set(self, row) -> None:
        """Stores a row in place of the one before."""
        if row is None:
            raise TypeError("None is no row: use clear()")
        self._row = row
        self._put = True

    def clear(self) -> None:
        """Forgets the row."""
        self._row = None
        self._put = False
        self._cleared = True

    def _changes(self):
        return self._cleared, [], [(None, self._row)] if self._put else []


class ListState:
    """A list of one key."""

    def __init__(self, entries: list):
        self._rows = [row for _, row in entries]
        self._cleared = False
        self._appended: list = []

    def __iter__(self) -> Iterator:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index):
        return self._rows[index]

    def append(self, row) -> None:
        """Stores a row behind the others."""
        self._rows.append(row)
        self._appended.append((None, row))

    def clear(self) -> None:
        """Forgets all rows."""
        self._rows = []
        self._appended = []
        self._cleared = True

    def _changes(self):
        return self._cleared, [], self._appended


class MapState:
    """A map of one key. Map keys are compared as Python compares them."""

    def __init__(self, entries: list):
        self._rows = {_frozen(map_key): (map_key, row) for map_key, row in entries}
        self._cleared = False
        self._removed: dict = {}
        self._put: dict = {}

    def get(self, map_key, default=None):
        """The row under a map key, or the default."""
        found = self._rows.get(_frozen(map_key))
        return default if found is None else found[1]

    def __contains__(self, map_key) -> bool:
        return _frozen(map_key) in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator:
        return iter([map_key for map_key, _ in self._rows.values()])

    def items(self) -> list:
        """Map keys and rows."""
        return list(self._rows.values())

    def put(self, map_key, row) -> None:
        """Stores a row under a map key."""
        frozen = _frozen(map_key)
        self._rows[frozen] = (map_key, row)
        self._removed.pop(frozen, None)
        self._put[frozen] = (map_key, row)

    def remove(self, map_key) -> None:
        """Forgets the row under a map key, if there is one."""
        frozen = _frozen(map_key)
        if self._rows.pop(frozen, None) is not None:
            self._put.pop(frozen, None)
            self._removed[frozen] = map_key

    def clear(self) -> None:
        """Forgets everything."""
        self._rows = {}
        self._removed = {}
        self._put = {}
        self._cleared = True

    def _changes(self):
        return self._cleared, list(self._removed.values()), list(self._put.values())


def _frozen(map_key):
    return dataclasses.astuple(map_key) if dataclasses.is_dataclass(map_key) else map_key


_STATES = {VALUE: ValueState, LIST: ListState, MAP: MapState}


class Context:
    """The times of a call, and the timers of its key."""

    def __init__(self, batch_time_ms: int = 0, watermark_ms: Optional[int] = None, timers=()):
        self.batch_time_ms = batch_time_ms
        """The time of the batch, in milliseconds since 1970."""
        self.watermark_ms = watermark_ms
        """The watermark, in milliseconds since 1970; None before there is one."""
        self._before = list(timers)
        self._timers = set(timers)

    @property
    def timers(self) -> List[int]:
        """When the timers of this key are due, in milliseconds since 1970, ascending."""
        return sorted(self._timers)

    def register_timer(self, due_ms: int) -> None:
        """Calls `expire` when that time has come. A timer that is there already is no error."""
        self._timers.add(due_ms)

    def delete_timer(self, due_ms: int) -> None:
        """Forgets a timer. One that is not there is no error."""
        self._timers.discard(due_ms)

    def _changes(self) -> Tuple[List[int], List[int]]:
        before = set(self._before)
        return sorted(before - self._timers), sorted(self._timers - before)


class Processor:
    """A class with `Key`, `Input`, `Output`, state variables, and the methods that get rows and timers."""

    def __init__(self, made: type, name: Optional[str], time: str, output_modes):
        if time not in ("none", "processing", "event"):
            raise ValueError(f"time is none, processing or event, not {time!r}")
        unknown = set(output_modes) - {"append", "update", "complete"}
        if unknown or not output_modes:
            raise ValueError("output_modes are of append, update and complete")
        self.made = made
        self.name = offered.sql_name(name or offered.snake(made.__name__))
        self.time = time
        self.output_modes = list(output_modes)
        for part in ("Key", "Input", "Output", "process"):
            if not hasattr(made, part):
                raise TypeError(f"{made.__name__} has no {part}")
        self.key = columns_of(made.Key)
        self.input = columns_of(made.Input)
        self.output = columns_of(made.Output)
        self.initial = columns_of(made.Initial) if hasattr(made, "Initial") else None
        self.variables = [variable for variable in vars(made).values() if isinstance(variable, Variable)]

    def run(self, call, method: str, columns: Optional[Columns], due=None):
        """Calls the method for each key of an invocation."""
        keys = self.key.read(Reader(call.keys.buffers), call.keys.rows)
        rows = [[] for _ in keys]
        if columns is not None and call.rows.rows:
            values = columns.read(Reader(call.rows.buffers), call.rows.rows)
            for key, value in zip(_numbers(call.key_of_row), values):
                rows[key].append(value)
        timers = _timers_of(call.timers, len(keys))
        due_of = _timers_of(due, len(keys)) if due is not None else None
        state = [self._entries(variable, entries, len(keys)) for variable, entries in zip(self.variables, call.state)]
        outcome = Outcome(len(self.variables))
        for number, key in enumerate(keys):
            itself = self.made()
            handles = []
            for variable, entries in zip(self.variables, state):
                handle = _STATES[variable.kind](entries[number])
                setattr(itself, variable.name, handle)
                handles.append(handle)
            given = rows[number] if due_of is None else due_of[number]
            # The host deletes what is due: for the call it is not there any more.
            waiting = timers[number] if due_of is None else [timer for timer in timers[number] if timer not in given]
            context = Context(call.batch_time_ms, call.watermark_ms, waiting)
            try:
                made = getattr(itself, method)(key, given, context)
                made = [] if made is None else list(made)
                self._add(outcome, number, made, handles, context)
            except CallError:
                raise
            except BaseException as error:
                outcome.key_errors.append((number, text_of(error)))
        return outcome

    def _entries(self, variable: Variable, entries, keys: int) -> list:
        of_key: list = [[] for _ in range(keys)]
        rows = entries.columns.rows
        if rows:
            values = variable.columns.read(Reader(entries.columns.buffers), rows)
            if variable.map_key is None:
                map_keys = [None] * rows
            else:
                map_keys = variable.map_key.read(Reader(entries.map_keys.buffers), rows)
            for key, map_key, value in zip(_numbers(entries.key_of_entry), map_keys, values):
                of_key[key].append((map_key, value))
        return of_key

    def _add(self, outcome: "Outcome", number: int, made: list, handles: list, context: Context) -> None:
        """Everything of one key, or, when something does not fit its columns, nothing."""
        self.output.write(made, [])
        changes = []
        for variable, handle in zip(self.variables, handles):
            cleared, removed, put = handle._changes()
            variable.columns.write([row for _, row in put], [])
            if variable.map_key is not None:
                variable.map_key.write([map_key for map_key, _ in put] + removed, [])
            changes.append((cleared, removed, put))
        deleted, registered = context._changes()
        array("q", deleted + registered)
        outcome.rows += made
        outcome.key_of_row += [number] * len(made)
        for to, (cleared, removed, put) in zip(outcome.changes, changes):
            if cleared:
                to.cleared.append(number)
            to.removed += [(number, map_key) for map_key in removed]
            to.put += [(number, map_key, row) for map_key, row in put]
        outcome.deleted += [(number, due) for due in deleted]
        outcome.registered += [(number, due) for due in registered]


class Changes:
    """What becomes of one variable."""

    def __init__(self):
        self.cleared: list = []
        self.removed: list = []
        self.put: list = []


class Outcome:
    """What a call makes of its keys."""

    def __init__(self, variables: int):
        self.rows: list = []
        self.key_of_row: list = []
        self.changes = [Changes() for _ in range(variables)]
        self.deleted: list = []
        self.registered: list = []
        self.key_errors: list = []


def _numbers(buffer: bytes) -> list:
    return memoryview(buffer).cast("I").tolist() if buffer else []


def _timers_of(timers, keys: int) -> list:
    of_key: list = [[] for _ in range(keys)]
    due = memoryview(timers.due_ms).cast("q").tolist() if timers.due_ms else []
    for key, time in zip(_numbers(timers.key_of_timer), due):
        of_key[key].append(time)
    return of_key


def processor(made=None, *, name: Optional[str] = None, time: str = "none", output_modes=("append", "update")):
    """Makes a class a stateful processor.

    The class has the dataclasses `Key`, `Input`, `Output` and perhaps `Initial`, state variables made by `value_state`,
    `list_state` and `map_state`, the method `process(self, key, rows, context)`, and perhaps `expire(self, key, due,
    context)` and `initialise(self, key, rows, context)`. Each returns the output rows, or yields them. `time` says which
    time timers go by: none, processing or event.
    """

    def decorate(made):
        offered.offer(offered.processors, Processor(made, name, time, tuple(output_modes)))
        return made

    return decorate if made is None else decorate(made)
