"""Aggregate functions: classes with a state that the host keeps."""

import dataclasses
import inspect
import typing
from typing import List, Optional

from . import offered
from .errors import CallError, text_of
from .functions import Arguments, RowErrors, encode, hints_of
from .types import Columns, Reader, Struct, type_of


class Aggregate:
    """A class with `State`, `accumulate`, `merge`, `evaluate`, and perhaps `retract`."""

    def __init__(self, made: type, name: Optional[str], state_id: str):
        self.name = offered.sql_name(name or offered.snake(made.__name__))
        self.state_id = state_id
        for method in ("accumulate", "merge", "evaluate"):
            if not callable(getattr(made, method, None)):
                raise TypeError(f"{made.__name__} has no method {method}")
        state = getattr(made, "State", None)
        if not dataclasses.is_dataclass(state):
            raise TypeError(f"{made.__name__} has no dataclass State")
        self.itself = made()
        self.new_state = state
        state()  # A group begins with it: every field has a default.
        self.state = Columns(Struct(state), None, True)
        self.retracts = hasattr(made, "retract")
        # `self` and the state come first.
        hints, _ = hints_of(_typed(made.accumulate, 2))
        self.arguments = Arguments(self.name, hints)
        self.result = type_of(_hint(made.evaluate, "return"))[0]

    def results(self):
        return self.result.nodes("value", True)

    def accumulate(self, groups: int, group_of_row: bytes, rows: int, buffers: list):
        states: list = [self.new_state() for _ in range(groups)]
        return self._over_rows(self.itself.accumulate, states, self.new_state, group_of_row, rows, buffers)

    def retract(self, states_rows: int, state_buffers: list, group_of_row: bytes, rows: int, buffers: list):
        read = lambda: self.state.read(Reader(state_buffers), states_rows)
        return self._over_rows(self.itself.retract, read(), read, group_of_row, rows, buffers)

    def _over_rows(self, method, states, anew, group_of_row, rows, buffers):
        arguments = list(self.arguments.rows(self.arguments.read(Reader(buffers), rows), rows))
        required = self.arguments.guarded
        group_of = memoryview(group_of_row).cast("I") if rows else []
        errors: RowErrors = []
        for row, group in enumerate(group_of):
            values = arguments[row]
            if required and any(values[at] is None for at in required):
                continue
            try:
                method(states[group], *values)
            except CallError:
                raise
            except BaseException as error:
                errors.append((row, text_of(error)))
                states[group] = self._again(method, anew, group, group_of, arguments, row, errors, required)
        return states, errors

    def _again(self, method, anew, group, group_of, arguments, end, errors, required):
        """The state as if the failed rows were not there: a method may have changed half of it before it failed."""
        fresh = anew()
        state = fresh[group] if isinstance(fresh, list) else fresh
        failed = {row for row, _ in errors}
        for row in range(end):
            if group_of[row] == group and row not in failed:
                values = arguments[row]
                if not (required and any(values[at] is None for at in required)):
                    method(state, *values)
        return state

    def merge(self, groups: int, group_of_row: bytes, rows: int, buffers: list) -> list:
        states: list = [None] * groups
        others = self.state.read(Reader(buffers), rows)
        for group, other in zip(memoryview(group_of_row).cast("I") if rows else [], others):
            if states[group] is None:
                states[group] = other
            else:
                self.itself.merge(states[group], other)
        return states

    def evaluate(self, rows: int, buffers: list):
        values: list = []
        errors: RowErrors = []
        for row, state in enumerate(self.state.read(Reader(buffers), rows)):
            try:
                values.append(self.itself.evaluate(state))
            except CallError:
                raise
            except BaseException as error:
                errors.append((row, text_of(error)))
                values.append(None)
        return encode(self.result, True, values, errors), errors

    def write_states(self, states: list) -> List[bytes]:
        buffers: List[bytes] = []
        self.state.write(states, buffers)
        return buffers


def _typed(method, skipped: int):
    """A stand-in with the annotations of a method but for its first parameters."""
    def stand_in():
        raise NotImplementedError

    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[skipped:]
    stand_in.__name__ = method.__qualname__
    stand_in.__signature__ = signature.replace(parameters=parameters)
    hints = typing.get_type_hints(method, include_extras=True)
    stand_in.__annotations__ = {p.name: hints[p.name] for p in parameters if p.name in hints} | {"return": bool}
    return stand_in


def _hint(method, name: str):
    hints = typing.get_type_hints(method, include_extras=True)
    if name not in hints:
        raise TypeError(f"{method.__qualname__}: {'the result' if name == 'return' else name} has no type")
    return hints[name]


def aggregate_function(made=None, *, name: Optional[str] = None, state_id: str = "1"):
    """Makes a class an aggregate function: many rows in, one value out.

    The class has a dataclass `State` whose fields all have defaults, and the methods `accumulate(self, state, …)` and
    `merge(self, state, other)`, which change the state, and `evaluate(self, state)`. With `retract(self, state, …)` rows
    can be taken back. `state_id` names what the fields of the state mean: give another one when that changes.
    """

    def decorate(made):
        offered.offer(offered.aggregates, Aggregate(made, name, state_id))
        return made

    return decorate if made is None else decorate(made)
