"""Sources: classes that rows come from, by ranges of offsets that they make up themselves."""

from typing import List, NamedTuple, Optional

from . import offered
from .types import columns_of


class Limits(NamedTuple):
    """How far a batch may go."""

    # Not beyond this offset, which an earlier call answered; None: as far as there are rows.
    until: Optional[str]
    # At most about so many rows; one step of the source is always allowed. None: any number.
    max_rows: Optional[int]


class Page(NamedTuple):
    """Some rows of a range, and the cursor that the next page is asked for with; None when this is the last."""

    rows: list
    next: Optional[str] = None


class Source:
    """A class with `Row`, `initial_offset`, `latest_offset`, `read`, and perhaps `commit`."""

    def __init__(self, made: type, name: Optional[str], options):
        self.name = offered.sql_name(name or offered.snake(made.__name__))
        for part in ("Row", "initial_offset", "latest_offset", "read"):
            if not hasattr(made, part):
                raise TypeError(f"{made.__name__} has no {part}")
        self.itself = made()
        self.columns = columns_of(made.Row)
        # An option whose name ends in `?` may be left out.
        self.options = [(option.removesuffix("?"), not option.endswith("?")) for option in options]

    def initial_offset(self, options: dict) -> str:
        return self._offset(self.itself.initial_offset(options))

    def latest_offset(self, options: dict, start: str, until: Optional[str], max_rows: Optional[int]) -> str:
        return self._offset(self.itself.latest_offset(options, start, Limits(until, max_rows)))

    def read(self, options: dict, start: str, end: str, cursor: Optional[str]) -> Page:
        """The rows, as values, and the next cursor."""
        read = self.itself.read(options, start, end, cursor)
        page = read if isinstance(read, Page) else Page(list(read))
        if page.next is not None and not isinstance(page.next, str):
            raise TypeError(f"`{self.name}` gave the cursor {page.next!r}, which is no text")
        return page

    def write(self, rows: list) -> List[bytes]:
        buffers: List[bytes] = []
        self.columns.write(rows, buffers)
        return buffers

    def commit(self, options: dict, offset: str) -> None:
        commit = getattr(self.itself, "commit", None)
        if commit is not None:
            commit(options, offset)

    def _offset(self, offset) -> str:
        if not isinstance(offset, str):
            raise TypeError(f"`{self.name}` gave the offset {offset!r}, which is no text")
        return offset


def source(made=None, *, name: Optional[str] = None, options=()):
    """Makes a class a source.

    The class has the dataclass `Row` and the methods `initial_offset(self, options)`, `latest_offset(self, options, start,
    limits)`, `read(self, options, start, end, cursor)`, and perhaps `commit(self, options, offset)`. Offsets are texts that
    only the source understands; the rows of a range are the same rows whenever it is read. `read` gives the rows, or a `Page`
    of them; its cursor is None for the first page. `options` names the options that a query may give; one that ends in `?` may
    be left out. What the object remembers between calls may be lost at any time.
    """

    def decorate(made):
        offered.offer(offered.sources, Source(made, name, tuple(options)))
        return made

    return decorate if made is None else decorate(made)
