"""Sinks: classes that take the rows of a result out into the world."""

import dataclasses
import inspect
import typing
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import offered
from .errors import CallError, text_of
from .types import Columns, Node, Reader, Struct, type_of_nodes

RowErrors = List[Tuple[int, str]]

MODES = ("append", "update", "complete")


@dataclasses.dataclass(frozen=True)
class Target:
    """What is written: one partition of one batch. One that was not done comes again with the same rows."""

    query_id: str
    """The id of the query: a UUID that stays when it is restarted."""
    partition: int
    """The partition of the batch, from 0."""
    batch: int
    """The batch."""
    options: Dict[str, str]
    """The options of the query."""
    mode: Optional[str] = None
    """The output mode: `append`, `update` or `complete`; none in `commit` and `abort`."""


class Sink:
    """A class with `open`, `process` and `close`, and perhaps `prepare`, `commit` and `abort`."""

    def __init__(self, made: type, name: Optional[str], options: Dict[str, bool], modes: Sequence[str]):
        self.name = offered.sql_name(name or offered.snake(made.__name__))
        self.made = made
        self.options = dict(options)
        self.modes = tuple(modes)
        if not self.modes or any(mode not in MODES for mode in self.modes):
            raise TypeError(f"{made.__name__}: modes are some of {', '.join(MODES)}")
        for method in ("open", "process", "close"):
            if not callable(getattr(made, method, None)):
                raise TypeError(f"{made.__name__} has no method {method}")
        two_phases = [callable(getattr(made, method, None)) for method in ("prepare", "commit", "abort")]
        if any(two_phases) and not all(two_phases):
            raise TypeError(f"{made.__name__} has some of prepare, commit and abort: it takes all three or none")
        self.is_transactional = all(two_phases)
        self.columns = _columns(made)

    def nodes(self) -> List[Node]:
        """The columns that it takes; none for any."""
        return [] if self.columns is None else self.columns.nodes()

    def begin(self) -> "Session":
        return Session(self)

    def settle(self, method: str, target: Target, token: bytes) -> None:
        """`commit` or `abort`, on a sink that has not been opened."""
        getattr(self.made(), method)(target, token)


class Session:
    """One partition of one batch."""

    def __init__(self, sink: Sink):
        self._sink = sink
        self._itself = sink.made()
        self._columns = sink.columns

    def open(self, target: Target, nodes: List[Node]) -> bool:
        if self._columns is None:
            self._columns = AnyColumns(nodes)
        wanted = self._itself.open(target)
        if not isinstance(wanted, bool):
            raise TypeError(f"{self._sink.name}.open answers {wanted!r}: it answers True, or False for rows it does not want")
        return wanted

    def process(self, rows: int, buffers: list) -> RowErrors:
        errors: RowErrors = []
        for number, row in enumerate(self._columns.read(Reader(buffers), rows)):
            if row is None:
                errors.append((number, "it has a null in a column that does not take nulls"))
                continue
            try:
                self._itself.process(row)
            except CallError:
                raise
            except BaseException as error:
                errors.append((number, text_of(error)))
        return errors

    def prepare(self) -> bytes:
        token = self._itself.prepare()
        if not isinstance(token, (bytes, bytearray, memoryview)):
            raise TypeError(f"{self._sink.name}.prepare answers {token!r}: a token is bytes")
        return bytes(token)

    def close(self, failure: Optional[str]) -> None:
        self._itself.close(failure)


class AnyColumns:
    """Rows of whatever columns there are, as dictionaries."""

    def __init__(self, nodes: List[Node]):
        self._fields = type_of_nodes(nodes)

    def read(self, reader: Reader, rows: int) -> List[Dict[str, Any]]:
        names = [name for name, _ in self._fields]
        columns = [kind.read(reader, rows) for _, kind in self._fields]
        if not columns:
            return [{} for _ in range(rows)]
        return [dict(zip(names, values)) for values in zip(*columns)]


def _columns(made: type) -> Optional[Columns]:
    """The columns of the dataclass that `process` takes; nothing where it takes a dict."""
    parameters = list(inspect.signature(made.process).parameters.values())
    if len(parameters) != 2:
        raise TypeError(f"{made.__name__}.process takes a row, and nothing else")
    hint = typing.get_type_hints(made.process, include_extras=True).get(parameters[1].name, dict)
    if hint is dict or typing.get_origin(hint) is dict:
        return None
    if not dataclasses.is_dataclass(hint):
        raise TypeError(f"{made.__name__}.process takes a dataclass, whose fields are columns, or a dict, not {hint!r}")
    return Columns(Struct(hint), None, True)


def sink(made=None, *, name: Optional[str] = None, options: Optional[Dict[str, bool]] = None, modes=MODES):
    """Makes a class a sink (Spark's `ForeachWriter`).

    For each partition of a batch there is an object of its own. `open(self, target)` comes first and answers whether the
    rows are wanted; then `process(self, row)` for each row, and `close(self, failure)`, which is called whenever `open`
    answered. The annotation of `row` says which columns the sink takes: a dataclass, or `dict` for any. A `RowError`, or
    any other exception but a `CallError`, in `process` is about that row.

    `options` names the options that a query may give, `True` for those that it must give. With `prepare(self)`, which
    answers bytes, and `commit(self, target, token)` and `abort(self, target, token)` rows are seen once or not at all; all
    sinks of a plugin have them, and `exports` in `plugin.toml` lists `sink-transaction` then.
    """

    def decorate(made):
        offered.offer(offered.sinks, Sink(made, name, options or {}, modes))
        return made

    return decorate if made is None else decorate(made)


class SinkTester:
    """Writes partitions of batches through a sink, without WebAssembly.

        tester = SinkTester(Orders, {"url": "http://…"})
        assert tester.write(1, [Order(1, "tea")]) == []
    """

    def __init__(self, made: type, options: Optional[Dict[str, str]] = None, mode: str = "append", partition: int = 0):
        found = [sink for sink in offered.sinks if sink.made is made]
        if not found:
            raise TypeError(f"{made.__name__} is no sink")
        self._sink = found[0]
        self._options = options or {}
        self._mode = mode
        self._partition = partition
        self.token: Optional[bytes] = None

    def target(self, batch: int) -> Target:
        """What is written as a batch."""
        return Target("00000000-0000-0000-0000-000000000001", self._partition, batch, self._options, self._mode)

    def write(self, batch: int, rows: list) -> RowErrors:
        """Writes a batch; the answer names the rows that failed. `token` is what `prepare` gave."""
        session = self._sink.begin()
        session._columns = _Given()
        self.token = None
        wanted = session.open(self.target(batch), [])
        errors: RowErrors = []
        try:
            if wanted:
                errors = session.process(len(rows), rows)
                self.token = session.prepare() if self._sink.is_transactional else None
        except BaseException as error:
            session.close(text_of(error))
            raise
        session.close(None)
        return errors


class _Given:
    """Rows that are objects already."""

    def read(self, reader: Reader, rows: int) -> list:
        return [reader.buffer() for _ in range(rows)]
