"""Sources: offsets, pages, and what does not fit."""

import unittest
from dataclasses import dataclass
from typing import Optional

from millstream import Page, int64, utf8
from millstream.sources import Limits, Source
from millstream.types import Reader


class Numbers:
    @dataclass
    class Row:
        n: int64
        text: Optional[utf8]

    committed: list = []

    def initial_offset(self, options):
        return "0"

    def latest_offset(self, options, start, limits):
        assert isinstance(limits, Limits)
        end = int(limits.until or options["count"])
        return str(min(end, int(start) + (limits.max_rows or end)))

    def read(self, options, start, end, cursor):
        begin = int(cursor or start)
        last = min(begin + 2, int(end))
        rows = [self.Row(n, None if n % 2 else str(n)) for n in range(begin, last)]
        return Page(rows, str(last)) if last < int(end) else rows

    def commit(self, options, offset):
        self.committed.append(offset)


class Sources(unittest.TestCase):
    def test_a_source_is_described_by_its_columns_and_options(self):
        source = Source(Numbers, None, ("count", "page?"))
        self.assertEqual((source.name, source.options), ("numbers", [("count", True), ("page", False)]))
        self.assertEqual([node[0] for node in source.columns.nodes()], ["n", "text"])

    def test_pages_lead_to_each_other(self):
        source = Source(Numbers, "numbers", ("count",))
        options = {"count": "5"}
        self.assertEqual(source.initial_offset(options), "0")
        self.assertEqual(source.latest_offset(options, "0", None, 3), "3")
        self.assertEqual(source.latest_offset(options, "0", "4", None), "4")
        rows, cursor = [], None
        while True:
            page = source.read(options, "0", "5", cursor)
            rows += source.columns.read(Reader(source.write(page.rows)), len(page.rows))
            cursor = page.next
            if cursor is None:
                break
        self.assertEqual([row.n for row in rows], [0, 1, 2, 3, 4])
        self.assertEqual([row.text for row in rows], ["0", None, "2", None, "4"])
        source.commit(options, "3")
        self.assertEqual(Numbers.committed, ["3"])

    def test_what_is_no_offset_is_told(self):
        class Wrong(Numbers):
            def initial_offset(self, options):
                return 0

            def read(self, options, start, end, cursor):
                return Page([], 7)

        source = Source(Wrong, None, ())
        with self.assertRaisesRegex(TypeError, "gave the offset 0"):
            source.initial_offset({})
        with self.assertRaisesRegex(TypeError, "gave the cursor 7"):
            source.read({}, "0", "1", None)
        with self.assertRaisesRegex(TypeError, "has no Row"):
            Source(object, "bare", ())


if __name__ == "__main__":
    unittest.main()
