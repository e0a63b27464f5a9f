"""Sinks, with a host that is made of lists."""

import unittest
from dataclasses import dataclass
from typing import Optional

from millstream import InvalidInput, RowError, SinkTester, int64, offered, sink, utf8
from millstream.sinks import Session, Sink, Target
from millstream.types import type_of, type_of_nodes


@dataclass
class Order:
    id: int64
    item: Optional[utf8]


class Orders:
    lines: list = []

    def open(self, target):
        self.here = [f"{target.partition}/{target.batch} {target.mode} {target.options}"]
        return "skip" not in target.options

    def process(self, row: Order):
        if row.item is None:
            raise RowError("no item")
        if row.item == "worst":
            raise InvalidInput("the worst row")
        self.here.append(f"{row.id} {row.item}")

    def close(self, failure):
        Orders.lines = self.here + [f"close {failure}"]


class Ledger(Orders):
    def prepare(self):
        return "\n".join(self.here).encode()

    def commit(self, target, token):
        if token == b"bad":
            raise RowError("unknown")

    def abort(self, target, token):
        pass


def target(**changes):
    return Target("q", 0, 1, {}, "append").__class__("q", 0, 1, changes, "append")


class Sinks(unittest.TestCase):
    def setUp(self):
        offered.sinks.clear()

    def test_a_sink_is_opened_given_each_row_and_closed(self):
        sink(Orders)
        errors = SinkTester(Orders, {"url": "u"}, partition=2).write(7, [Order(1, "tea"), Order(2, None), Order(3, "x")])
        self.assertEqual(errors, [(1, "no item")])
        self.assertEqual(Orders.lines, ["2/7 append {'url': 'u'}", "1 tea", "3 x", "close None"])

    def test_rows_that_are_not_wanted_are_closed_without(self):
        sink(Orders)
        self.assertEqual(SinkTester(Orders, {"skip": ""}).write(0, [Order(1, "tea")]), [])
        self.assertEqual(Orders.lines, ["0/0 append {'skip': ''}", "close None"])

    def test_a_failure_is_told_to_close(self):
        sink(Orders)
        with self.assertRaises(InvalidInput):
            SinkTester(Orders).write(0, [Order(1, "worst")])
        self.assertEqual(Orders.lines[-1], "close the worst row")

    def test_a_transactional_sink_prepares(self):
        sink(Ledger)
        tester = SinkTester(Ledger)
        tester.write(0, [Order(1, "tea")])
        self.assertEqual(tester.token, b"0/0 append {}\n1 tea")
        with self.assertRaises(RowError):
            offered.sinks[0].settle("commit", target(), b"bad")

    def test_columns_are_those_of_the_annotation_or_any(self):
        nodes = [("id", "l", False, 0), ("item", "u", True, 0)]
        self.assertEqual(Sink(Orders, None, {}, ("append",)).nodes(), nodes)

        class Anything:
            def open(self, target):
                return True

            def process(self, row):
                self.row = row

            def close(self, failure):
                pass

        any_sink = Sink(Anything, None, {}, ("append",))
        self.assertEqual(any_sink.nodes(), [])
        session = Session(any_sink)
        session.open(target(), nodes)
        buffers: list = []
        type_of(int64)[0].write([5], False, buffers)
        type_of(utf8)[0].write([None], True, buffers)
        self.assertEqual(session.process(1, buffers), [])
        self.assertEqual(session._itself.row, {"id": 5, "item": None})

    def test_any_type_can_be_read_by_its_fields(self):
        nodes = [("l", "+l", True, 1), ("item", "+s", True, 2), ("d", "d:4,2", True, 0), ("b", "b", True, 0)]
        ((name, kind),) = type_of_nodes(nodes)
        self.assertEqual(name, "l")
        buffers = [b"", bytes([0, 0, 0, 0, 1, 0, 0, 0]), b"", b"", (125).to_bytes(16, "little"), b"", b"\x01"]
        from millstream.types import Reader

        (value,) = kind.read(Reader(buffers), 1)
        self.assertEqual([{"d": str(v["d"]), "b": v["b"]} for v in value], [{"d": "1.25", "b": True}])

    def test_what_is_no_sink_is_refused(self):
        class Half(Orders):
            def prepare(self):
                return b""

        class Nothing:
            pass

        for made in (Half, Nothing):
            with self.assertRaises(TypeError):
                sink(made)
        with self.assertRaises(TypeError):
            sink(Orders, modes=("sometimes",))


if __name__ == "__main__":
    unittest.main()
