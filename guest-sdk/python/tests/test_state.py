"""Aggregates and processors, with a host that is made of lists."""

import unittest
from array import array
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Optional

from millstream import RowError, float64, int64, list_state, map_state, timestamp, utf8, value_state
from millstream.aggregates import Aggregate
from millstream.migrations import Migration
from millstream.processors import Processor
from millstream.types import Reader, type_of


def column(hint, values):
    buffers = []
    type_of(hint)[0].write(list(values), True, buffers)
    return buffers


class Mean:
    @dataclass
    class State:
        count: int64 = 0
        sum: float64 = 0.0

    def accumulate(self, state: State, x: float64):
        state.count += 1
        if x < 0:
            raise RowError("negative")
        state.sum += x

    def merge(self, state: State, other: State):
        state.count += other.count
        state.sum += other.sum

    def evaluate(self, state: State) -> Optional[float64]:
        return state.sum / state.count if state.count else None


def u32(*numbers):
    return array("I", numbers).tobytes()


class Aggregates(unittest.TestCase):
    def test_groups_are_accumulated_merged_and_evaluated(self):
        mean = Aggregate(Mean, None, "1")
        self.assertEqual((mean.name, mean.retracts), ("mean", False))
        states, errors = mean.accumulate(3, u32(0, 2, 0), 3, column(float, [1.0, 5.0, 3.0]))
        self.assertEqual((states, errors), ([Mean.State(2, 4.0), Mean.State(), Mean.State(1, 5.0)], []))
        buffers = mean.write_states(states)
        merged = mean.merge(2, u32(1, 0, 1), 3, buffers)
        self.assertEqual(merged, [Mean.State(), Mean.State(3, 9.0)])
        values, errors = mean.evaluate(2, mean.write_states(merged))
        self.assertEqual(list(mean.result.read(Reader(values), 2)), [None, 3.0])

    def test_a_row_that_fails_leaves_no_trace_in_the_state(self):
        mean = Aggregate(Mean, None, "1")
        states, errors = mean.accumulate(1, u32(0, 0, 0, 0), 4, column(float, [1.0, -1.0, 2.0, -2.0]))
        self.assertEqual(states, [Mean.State(2, 3.0)])
        self.assertEqual(errors, [(1, "negative"), (3, "negative")])


@dataclass
class Page:
    page: utf8


class Visits:
    @dataclass
    class Key:
        user: utf8

    Input = Page

    @dataclass
    class Output:
        n: int64
        pages: int64

    count = value_state(int64)
    history = list_state(Page, ttl_ms=5)
    per_page = map_state(Page, int64, state_id="2")

    def process(self, key, rows, context):
        for row in rows:
            if row.page == "boom":
                raise RowError(f"{key.user} met boom")
            self.count.set(self.count.get(0) + 1)
            self.history.append(row)
            self.per_page.put(row, self.per_page.get(row, 0) + 1)
        if rows[0].page == "forget":
            self.count.clear()
            self.per_page.remove(Page("a"))
        for timer in context.timers:
            context.delete_timer(timer)
        context.register_timer(context.batch_time_ms + 10)
        yield self.Output(self.count.get(0), len(self.per_page))

    def expire(self, key, due, context):
        context.register_timer(due[-1] + 1)
        return [self.Output(len(due), len(context.timers))]


def batch(hint, values, columns=True):
    kind = type_of(hint)[0]
    buffers = []
    kind.write_columns(list(values), buffers) if columns else kind.write(list(values), True, buffers)
    return SimpleNamespace(rows=len(values), buffers=buffers)


def timers(*pairs):
    due = array("q", [due for _, due in pairs]).tobytes()
    return SimpleNamespace(key_of_timer=u32(*[key for key, _ in pairs]), due_ms=due)


NONE = SimpleNamespace(rows=0, buffers=[])


def entries(key_of_entry, columns, map_keys=NONE):
    return SimpleNamespace(key_of_entry=u32(*key_of_entry), map_keys=map_keys, columns=columns)


class Processors(unittest.TestCase):
    def setUp(self):
        self.visits = Processor(Visits, None, "processing", ("append",))

    def call(self, users, rows):
        return SimpleNamespace(
            keys=batch(Visits.Key, [Visits.Key(user) for user in users]),
            key_of_row=u32(*[key for key, _ in rows]),
            rows=batch(Page, [Page(page) for _, page in rows]),
            state=[
                entries([0], batch(int, [5], columns=False)),
                entries([0, 0], batch(Page, [Page("a"), Page("a")])),
                entries([0], batch(int, [2], columns=False), batch(Page, [Page("a")])),
            ],
            timers=timers(*[timer for timer in [(0, 7), (0, 9), (1, 8)] if timer[0] < len(users)]),
            batch_time_ms=100,
            watermark_ms=None,
        )

    def test_each_key_sees_its_rows_and_its_state(self):
        outcome = self.visits.run(self.call(["ann", "bob"], [(0, "a"), (0, "b"), (1, "a")]), "process", self.visits.input)
        self.assertEqual(outcome.rows, [Visits.Output(7, 2), Visits.Output(1, 1)])
        self.assertEqual(outcome.key_of_row, [0, 1])
        count, history, per_page = outcome.changes
        self.assertEqual(count.put, [(0, None, 7), (1, None, 1)])
        self.assertEqual([row for _, _, row in history.put], [Page("a"), Page("b"), Page("a")])
        self.assertEqual(per_page.put, [(0, Page("a"), 3), (0, Page("b"), 1), (1, Page("a"), 1)])
        self.assertEqual(outcome.deleted, [(0, 7), (0, 9), (1, 8)])
        self.assertEqual(outcome.registered, [(0, 110), (1, 110)])

    def test_what_is_cleared_and_removed_is_told(self):
        outcome = self.visits.run(self.call(["ann"], [(0, "forget")]), "process", self.visits.input)
        count, _, per_page = outcome.changes
        self.assertEqual((count.cleared, count.put), ([0], []))
        self.assertEqual((per_page.removed, per_page.put), ([(0, Page("a"))], [(0, Page("forget"), 1)]))

    def test_a_key_that_fails_changes_nothing(self):
        outcome = self.visits.run(self.call(["ann", "bob"], [(0, "a"), (0, "boom"), (1, "a")]), "process", self.visits.input)
        self.assertEqual(outcome.key_errors, [(0, "ann met boom")])
        self.assertEqual(outcome.key_of_row, [1])
        self.assertEqual({key for change in outcome.changes for key, _, _ in change.put}, {1})
        self.assertEqual({key for key, _ in outcome.deleted + outcome.registered}, {1})

    def test_timers_that_are_due_are_gone_for_the_call(self):
        call = self.call(["ann", "bob"], [])
        outcome = self.visits.run(call, "expire", None, timers((0, 7), (1, 8)))
        self.assertEqual(outcome.rows, [Visits.Output(1, 2), Visits.Output(1, 1)])
        self.assertEqual((outcome.deleted, outcome.registered), ([], [(0, 8), (1, 9)]))


@dataclass
class Old:
    n: int64


@dataclass
class New:
    n: int64
    at: Optional[timestamp]


class Migrations(unittest.TestCase):
    def test_rows_are_migrated_one_by_one(self):
        def grow(old):
            if old.n == 0:
                raise RowError("nothing to grow")
            return New(old.n + 1, None)

        step = Migration(grow, "mean", "1", Old, "2", New)
        buffers, errors = step.migrate(3, batch(Old, [Old(1), Old(0), Old(3)]).buffers)
        self.assertEqual(errors, [(1, "nothing to grow")])
        rows = step.new.read(Reader(buffers), 3)
        self.assertEqual((rows[0], rows[2]), (New(2, None), New(4, None)))


if __name__ == "__main__":
    unittest.main()
