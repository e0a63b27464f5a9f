"""The plugin of `tests/languages` in Python."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

import millstream
from millstream import (
    InvalidInput,
    RowError,
    Unavailable,
    aggregate_function,
    binary,
    boolean,
    date,
    decimal,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    list_state,
    local_timestamp,
    log,
    map_state,
    processor,
    scalar_function,
    source,
    table_function,
    timestamp,
    uint8,
    uint16,
    uint32,
    uint64,
    utf8,
    value_state,
)


@dataclass
class Inner:
    at: timestamp
    bytes: binary


@dataclass
class Everything:
    flag: boolean
    small: Optional[int8]
    text: Optional[utf8]
    numbers: list[int64]
    inner: Inner


@dataclass
class Numbered:
    position: int32
    word: Optional[utf8]


def echo(name, kind):
    def function(x):
        return x

    function.__annotations__ = {"x": Optional[kind], "return": Optional[kind]}
    scalar_function(name=f"echo_{name}")(function)


for name, kind in {
    "bool": boolean,
    "i8": int8,
    "u8": uint8,
    "i16": int16,
    "u16": uint16,
    "i32": int32,
    "u32": uint32,
    "i64": int64,
    "u64": uint64,
    "f32": float32,
    "f64": float64,
    "decimal": decimal(38, 10),
    "utf8": utf8,
    "binary": binary,
    "date": date,
    "timestamp": timestamp,
    "local_timestamp": local_timestamp,
    "list": list[Optional[utf8]],
    "lists": list[Optional[list[Optional[float64]]]],
    "struct": Everything,
    "structs": list[Optional[Everything]],
}.items():
    echo(name, kind)


@scalar_function
def add(a: int64, b: int64) -> int64:
    total = a + b
    if not -(2**63) <= total < 2**63:
        raise RowError(f"{a} + {b} does not fit")
    return total


@scalar_function
def heat(level: int64, visits: int64) -> float64:
    return 0.1 * level + 0.9 * visits


CAPITALS = {ord(c): ord(c) - 32 for c in "abcdefghijklmnopqrstuvwxyz"}


@scalar_function
def shout(text: utf8) -> utf8:
    return text.translate(CAPITALS) + "!"


@scalar_function
def length(text: utf8) -> int64:
    return len(text)


@scalar_function
def reversed(x: binary) -> binary:
    return x[::-1]


@scalar_function
def negate(x: decimal(38, 10)) -> decimal(38, 10):
    return x.copy_negate()


@scalar_function
def total(numbers: list[Optional[int64]]) -> Optional[int64]:
    there = [number for number in numbers if number is not None]
    return sum(there) if there else None


@scalar_function
def or_zero(x: Optional[int64]) -> int64:
    return 0 if x is None else x


@scalar_function
def null_if_odd(x: int64) -> Optional[int64]:
    return x if x % 2 == 0 else None


@scalar_function
def seven() -> int32:
    return 7


@scalar_function
def repeated(n: int64) -> utf8:
    return "x" * n


@scalar_function
def picky(x: int64) -> int64:
    if x == 13:
        raise RowError("13 is refused")
    return x


@scalar_function
def throws(x: int64) -> int64:
    if x == 13:
        raise ValueError("thrown on purpose: 13")
    return x


@scalar_function
def refuses(x: int64) -> int64:
    if x == 13:
        raise Unavailable("the world is away")
    return x


@scalar_function
def loops(x: int64) -> int64:
    while x == 13:
        pass
    return x


@scalar_function
def eats(x: int64) -> int64:
    eaten = []
    while x == 13:
        eaten.append(bytearray(b"x" * (1 << 20)))
    return x


@scalar_function
def dives(x: int64) -> int64:
    def deeper(x):
        return deeper(x + 1) + 1

    return deeper(x) if x == 13 else x


@scalar_function
def logs(text: utf8) -> int64:
    log.info(text)
    return len(text)


@table_function(column="word")
def words(line: utf8) -> Iterator[utf8]:
    return (word for word in line.split(" ") if word)


@table_function
def numbered(line: utf8) -> Iterator[Numbered]:
    for position, word in enumerate(words(line)):
        yield Numbered(position, None if word == "null" else word)


@table_function(column="element")
def elements(numbers: list[Optional[int64]]) -> list[Optional[int64]]:
    return numbers


@table_function
def countdown(n: int64) -> Iterator[int64]:
    if n < 0:
        raise RowError(f"{n} is negative")
    yield from range(n, 0, -1)


@table_function
def echo_rows(x: Everything) -> list[Everything]:
    return [x]


@aggregate_function
class Mean:
    @dataclass
    class State:
        count: int64 = 0
        sum: float64 = 0.0

    def accumulate(self, state: State, x: float64):
        state.count += 1
        state.sum += x

    def merge(self, state: State, other: State):
        state.count += other.count
        state.sum += other.sum

    def retract(self, state: State, x: float64):
        state.count -= 1
        state.sum -= x

    def evaluate(self, state: State) -> Optional[float64]:
        return state.sum / state.count if state.count else None


@aggregate_function
class Longest:
    @dataclass
    class State:
        text: Optional[utf8] = None

    def accumulate(self, state: State, text: utf8):
        if state.text is None or len(text) > len(state.text):
            state.text = text

    def merge(self, state: State, other: State):
        if other.text is not None:
            self.accumulate(state, other.text)

    def evaluate(self, state: State) -> Optional[utf8]:
        return state.text


@aggregate_function
class StrictSum:
    @dataclass
    class State:
        sum: int64 = 0

    def accumulate(self, state: State, x: int64):
        if x < 0:
            raise RowError(f"{x} is negative")
        state.sum += x

    def merge(self, state: State, other: State):
        state.sum += other.sum

    def evaluate(self, state: State) -> int64:
        return state.sum


@dataclass
class Count:
    n: int64


@dataclass
class Page:
    page: utf8


@processor(time="event")
class Visits:
    @dataclass
    class Key:
        user: utf8

    @dataclass
    class Input:
        page: utf8
        at: timestamp

    @dataclass
    class Output:
        event: utf8
        visits: int64
        pages: int64
        last: Optional[utf8]

    @dataclass
    class Initial:
        visits: int64

    visits = value_state(Count)
    history = list_state(Page)
    per_page = map_state(Page, Count)

    def row(self, event):
        last = self.history[-1].page if len(self.history) else None
        return self.Output(event, self.visits.get(Count(0)).n, len(self.per_page), last)

    def process(self, key, rows, context):
        for row in rows:
            if row.page == "boom":
                raise RowError(f"{key.user} met boom")
            page = Page(row.page)
            self.visits.set(Count(self.visits.get(Count(0)).n + 1))
            self.history.append(page)
            self.per_page.put(page, Count(self.per_page.get(page, Count(0)).n + 1))
        for timer in context.timers:
            context.delete_timer(timer)
        context.register_timer(max(row.at for row in rows) // 1000 + 10_000)
        yield self.row("seen")

    def expire(self, key, due, context):
        row = self.row("gone")
        self.visits.clear()
        self.history.clear()
        self.per_page.clear()
        yield row

    def initialise(self, key, rows, context):
        self.visits.set(Count(rows[-1].visits))


@source(options=("rows", "away?"))
class Ledger:
    @dataclass
    class Row:
        n: int64
        label: Optional[utf8]
        at: timestamp

    def initial_offset(self, options):
        return "0"

    def latest_offset(self, options, start, limits):
        end = int(limits.until or options["rows"])
        return str(end if limits.max_rows is None else min(end, int(start) + limits.max_rows))

    def read(self, options, start, end, cursor):
        begin, end = int(cursor or start), int(end)
        last = min(end, begin + 1000)
        away = options.get("away")
        if away is not None and begin <= int(away) < last:
            raise Unavailable(f"row {away} is away")
        rows = [self.Row(n, f"row {n}" if n % 3 else None, n * 1_000_000) for n in range(begin, last)]
        return millstream.Page(rows, str(last) if last < end else None)

    def commit(self, options, offset):
        if int(offset) > int(options["rows"]):
            raise InvalidInput(f"there are {options['rows']} rows, not {offset}")
