"""Migrations: how state that older code wrote becomes state of this code."""

from . import offered
from .errors import CallError, InvalidInput, text_of
from .functions import RowErrors
from .types import Reader, columns_of


class Migration:
    """One step from one meaning of a piece of state to another."""

    def __init__(self, function, state: str, from_id: str, old: type, to_id: str, new: type):
        self.name = f"{state} {from_id} {to_id}"
        self.state = state
        self.from_id = from_id
        self.to_id = to_id
        self.function = function
        self.old = columns_of(old)
        self.new = columns_of(new)

    def migrate(self, rows: int, buffers: list):
        values: list = []
        errors: RowErrors = []
        for row, old in enumerate(self.old.read(Reader(buffers), rows)):
            try:
                new = self.function(old)
                self.new.write([new], [])
                values.append(new)
            except CallError:
                raise
            except BaseException as error:
                errors.append((row, text_of(error)))
                values.append(None)
        # A failed row has the place of any other that did not: it is not looked at.
        good = next((value for value in values if value is not None), None)
        if good is None and values and errors:
            raise InvalidInput(errors[0][1])
        out: list = []
        self.new.write([good if value is None else value for value in values], out)
        return out, errors


def migration(*, state: str, from_id: str, from_columns: type, to_id: str, to_columns: type):
    """Makes a function of one old row a step of migration: it returns the new row.

    `state` is the name of an aggregate function, or `processor.variable`. The columns are dataclasses.
    """

    def decorate(function):
        step = Migration(function, state, from_id, from_columns, to_id, to_columns)
        offered.offer(offered.migrations, step)
        return function

    return decorate
