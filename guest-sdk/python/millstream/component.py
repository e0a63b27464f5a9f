"""The exports of the component. Only there: it imports the bindings that are made for it.

Whatever a plugin raises becomes an answer with the plugin's own words; an instance that raised can go on.
"""

from array import array

from componentize_py_types import Err
from wit_world.exports import describe as _describe
from wit_world.imports import log as _log
from wit_world.imports import types as _types

from . import log, offered
from .errors import InvalidInput, Unavailable, text_of

try:
    from wit_world.exports import scalar as _scalar
except ImportError:
    _scalar = None
try:
    from wit_world.exports import table as _table
except ImportError:
    _table = None
try:
    from wit_world.exports import aggregate as _aggregate
except ImportError:
    _aggregate = None
try:
    from wit_world.exports import processor as _processor
except ImportError:
    _processor = None
try:
    from wit_world.exports import migration as _migration
except ImportError:
    _migration = None

try:
    from wit_world.exports import source as _source
except ImportError:
    _source = None

_LEVELS = {level: getattr(_log.Level, level.upper()) for level in log.LEVELS}
log._set_writer(lambda level, message: _log.log(_LEVELS[level], str(message)))


def _fields(nodes) -> list:
    return [_types.Field(*node) for node in nodes]


def _nulls(arguments):
    return _types.Nulls.PASSED if arguments.sees_nulls else _types.Nulls.SKIPPED


def _row_errors(errors) -> list:
    return [_types.RowError(row, message) for row, message in errors]


def _batch(rows: int, buffers: list):
    return _types.Batch(rows, buffers)


def _u32(numbers) -> bytes:
    return array("I", numbers).tobytes()


def _refusal(error: BaseException) -> Err:
    text = text_of(error)
    if isinstance(error, InvalidInput):
        return Err(_types.Error_InvalidInput(text))
    if isinstance(error, Unavailable):
        return Err(_types.Error_Unavailable(text))
    return Err(_types.Error_Internal(text))


def _answers(method):
    """Turns whatever is raised into an answer."""

    def answering(*arguments):
        try:
            return method(*arguments)
        except Err:
            raise
        except BaseException as error:
            raise _refusal(error) from None

    return answering


def _numbered(offers: list, number: int):
    if number < len(offers):
        return offers[number]
    raise Err(_types.Error_Internal(f"there is no number {number}"))


class Describe:
    def describe(self):
        def function(offer):
            return _describe.Function(
                offer.name,
                _describe.Kind.TABLE if offer.is_table else _describe.Kind.SCALAR,
                _fields(offer.arguments.nodes()),
                _fields(offer.results()),
                _describe.Volatility.VOLATILE if offer.volatile else _describe.Volatility.IMMUTABLE,
                _nulls(offer.arguments),
            )

        return [function(offer) for offer in offered.functions]


class Scalar:
    @_answers
    def call(self, function, arguments):
        buffers, errors = _numbered(offered.functions, function).call(arguments.rows, arguments.buffers)
        return _scalar.ScalarOutput(_batch(arguments.rows, buffers), _row_errors(errors))


class Table:
    @_answers
    def call(self, function, arguments):
        numbers, rows, buffers, errors = _numbered(offered.functions, function).call(arguments.rows, arguments.buffers)
        return _table.TableOutput(numbers.tobytes(), _batch(rows, buffers), _row_errors(errors))


class Aggregate:
    def describe(self):
        def function(offer):
            return _aggregate.AggregateFunction(
                offer.name,
                _fields(offer.arguments.nodes()),
                _fields(offer.results()),
                _fields(offer.state.nodes()),
                offer.state_id,
                _nulls(offer.arguments),
                offer.retracts,
            )

        return [function(offer) for offer in offered.aggregates]

    @_answers
    def accumulate(self, function, groups, group_of_row, arguments):
        offer = _numbered(offered.aggregates, function)
        states, errors = offer.accumulate(groups, group_of_row, arguments.rows, arguments.buffers)
        return _aggregate.StatesOutput(_batch(groups, offer.write_states(states)), _row_errors(errors))

    @_answers
    def merge(self, function, groups, group_of_row, states):
        offer = _numbered(offered.aggregates, function)
        merged = offer.merge(groups, group_of_row, states.rows, states.buffers)
        return _aggregate.StatesOutput(_batch(groups, offer.write_states(merged)), [])

    @_answers
    def retract(self, function, states, group_of_row, arguments):
        offer = _numbered(offered.aggregates, function)
        left, errors = offer.retract(states.rows, states.buffers, group_of_row, arguments.rows, arguments.buffers)
        return _aggregate.StatesOutput(_batch(states.rows, offer.write_states(left)), _row_errors(errors))

    @_answers
    def evaluate(self, function, states):
        buffers, errors = _numbered(offered.aggregates, function).evaluate(states.rows, states.buffers)
        return _aggregate.ResultsOutput(_batch(states.rows, buffers), _row_errors(errors))


class Processor:
    def describe(self):
        times = {
            "none": _processor.TimeMode.NONE,
            "processing": _processor.TimeMode.PROCESSING_TIME,
            "event": _processor.TimeMode.EVENT_TIME,
        }

        def variable(declared):
            return _processor.Variable(
                declared.name,
                getattr(_processor.VariableKind, declared.kind.upper()),
                [] if declared.map_key is None else _fields(declared.map_key.nodes()),
                _fields(declared.columns.nodes()),
                declared.state_id,
                declared.ttl_ms,
            )

        def processor(offer):
            modes = _processor.OutputModes(0)
            for mode in offer.output_modes:
                modes |= getattr(_processor.OutputModes, mode.upper())
            return _processor.ProcessorType(
                offer.name,
                _fields(offer.key.nodes()),
                _fields(offer.input.nodes()),
                _fields(offer.output.nodes()),
                [] if offer.initial is None else _fields(offer.initial.nodes()),
                [variable(declared) for declared in offer.variables],
                times[offer.time],
                modes,
            )

        return [processor(offer) for offer in offered.processors]

    @_answers
    def process(self, processor, call):
        offer = _numbered(offered.processors, processor)
        return self._outcome(offer, offer.run(call, "process", offer.input))

    @_answers
    def expire(self, processor, call, due):
        offer = _numbered(offered.processors, processor)
        return self._outcome(offer, offer.run(call, "expire", None, due))

    @_answers
    def initialise(self, processor, call):
        offer = _numbered(offered.processors, processor)
        return self._outcome(offer, offer.run(call, "initialise", offer.initial))

    def _outcome(self, offer, outcome):
        return _processor.Outcome(
            _columns(offer.output, outcome.rows),
            _u32(outcome.key_of_row),
            [self._changes(*pair) for pair in zip(offer.variables, outcome.changes)],
            self._timers(outcome.deleted),
            self._timers(outcome.registered),
            _row_errors(outcome.key_errors),
        )

    def _changes(self, variable, changes):
        none = _batch(0, [])
        is_map = variable.map_key is not None
        return _processor.VariableChanges(
            _u32(changes.cleared),
            _u32([key for key, _ in changes.removed]),
            _columns(variable.map_key, [map_key for _, map_key in changes.removed]) if is_map else none,
            _processor.Entries(
                _u32([key for key, _, _ in changes.put]),
                _columns(variable.map_key, [map_key for _, map_key, _ in changes.put]) if is_map else none,
                _columns(variable.columns, [row for _, _, row in changes.put]),
            ),
        )

    def _timers(self, timers):
        return _processor.Timers(_u32([key for key, _ in timers]), array("q", [due for _, due in timers]).tobytes())


class Source:
    def describe(self):
        def source(offer):
            options = [_source.SourceOption(name, required) for name, required in offer.options]
            return _source.SourceType(offer.name, _fields(offer.columns.nodes()), options)

        return [source(offer) for offer in offered.sources]

    @_answers
    def initial_offset(self, source, options):
        return _numbered(offered.sources, source).initial_offset(dict(options))

    @_answers
    def latest_offset(self, source, options, start, limits):
        offer = _numbered(offered.sources, source)
        return offer.latest_offset(dict(options), start, limits.until, limits.max_rows)

    @_answers
    def read(self, source, options, start, end, cursor):
        offer = _numbered(offered.sources, source)
        page = offer.read(dict(options), start, end, cursor)
        return _source.Page(_batch(len(page.rows), offer.write(page.rows)), page.next)

    @_answers
    def commit(self, source, options, offset):
        _numbered(offered.sources, source).commit(dict(options), offset)


class Migration:
    def describe(self):
        def step(offer):
            return _migration.Step(
                offer.state, offer.from_id, _fields(offer.old.nodes()), offer.to_id, _fields(offer.new.nodes())
            )

        return [step(offer) for offer in offered.migrations]

    @_answers
    def migrate(self, step, keys, rows):
        buffers, errors = _numbered(offered.migrations, step).migrate(rows.rows, rows.buffers)
        return _migration.Migrated(_batch(rows.rows, buffers), _row_errors(errors))


def _columns(columns, rows: list):
    buffers: list = []
    columns.write(rows, buffers)
    return _batch(len(rows), buffers)
