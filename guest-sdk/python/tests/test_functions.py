"""Functions over columns: nulls, rows that fail, batches."""

import unittest
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from millstream import InvalidInput, RowError, float64, int64, log, utf8
from millstream.functions import Scalar, Table
from millstream.types import Reader, type_of


def column(hint, values):
    buffers = []
    type_of(hint)[0].write(list(values), True, buffers)
    return buffers


def call(function, *columns, batch=False):
    """The values and the errors."""
    scalar = Scalar(function, None, False, batch)
    rows = len(columns[0][1])
    buffers, errors = scalar.call(rows, [buffer for hint, values in columns for buffer in column(hint, values)])
    return list(scalar.result.read(Reader(buffers), rows)), errors


class Scalars(unittest.TestCase):
    def test_one_value_per_row(self):
        def heat(level: int64, visits: int64) -> float64:
            return 0.5 * level + visits

        self.assertEqual(call(heat, (int, [2, 4]), (int, [1, 0])), ([2.0, 2.0], []))

    def test_a_null_gives_null_where_the_function_has_no_use_for_it(self):
        def either(a: Optional[int64], b: int64) -> int64:
            return b if a is None else a

        self.assertEqual(call(either, (int, [None, 1, None]), (int, [7, None, None])), ([7, None, None], []))

    def test_a_list_with_a_null_is_null_where_its_elements_cannot_be(self):
        def total(x: list[int64]) -> int64:
            return sum(x)

        self.assertEqual(call(total, (list[Optional[int64]], [[1, None], [2, 3], []])), ([None, 5, 0], []))

    def test_rows_that_fail_are_named_and_the_others_go_on(self):
        def picky(x: int64) -> int64:
            if x == 13:
                raise RowError("13 is refused")
            return 1 // x

        values, errors = call(picky, (int, [1, 13, 0, 2]))
        self.assertEqual(values, [1, None, None, 0])
        self.assertEqual(errors[0], (1, "13 is refused"))
        row, message = errors[1]
        self.assertEqual(row, 2)
        self.assertRegex(message, r"(?s)ZeroDivisionError: .*at .*picky \(test_functions.py:\d+\)")

    def test_results_that_do_not_fit_are_rows_that_fail(self):
        def double(x: int64) -> int64:
            return 2 * x

        values, errors = call(double, (int, [1, 2**62, 3]))
        self.assertEqual(values, [2, None, 6])
        self.assertEqual([row for row, _ in errors], [1])
        self.assertIn("does not fit", errors[0][1])

    def test_a_refused_call_is_refused_as_a_whole(self):
        def refuse(x: int64) -> int64:
            raise InvalidInput("no")

        with self.assertRaises(InvalidInput):
            call(refuse, (int, [1]))

    def test_a_batch_function_gets_columns(self):
        def doubled(x: Sequence[int64]) -> Sequence[int64]:
            return array("q", (2 * value for value in x))

        self.assertEqual(call(doubled, (int, [1, 2, 3]), batch=True), ([2, 4, 6], []))

        def short(x: Sequence[int64]) -> Sequence[int64]:
            return [1]

        with self.assertRaisesRegex(ValueError, "1 values for 2 rows"):
            call(short, (int, [1, 2]), batch=True)

    def test_functions_without_types_are_refused_when_they_are_made(self):
        def untyped(x) -> int64:
            return x

        def without_result(x: int64):
            return x

        def Loud(x: int64) -> int64:
            return x

        for function in (untyped, without_result, Loud):
            with self.assertRaises((TypeError, ValueError)):
                Scalar(function, None, False, False)

    def test_lines_of_log_go_to_logging(self):
        with self.assertLogs("millstream", "INFO") as lines:
            log.info("100 % of it")
        self.assertEqual(lines.records[0].getMessage(), "100 % of it")


@dataclass
class Word:
    position: int64
    text: utf8


class Tables(unittest.TestCase):
    def test_rows_know_where_they_came_from(self):
        def words(line: utf8) -> Iterator[Word]:
            if line == "bad":
                yield Word(0, "lost")
                raise RowError("a bad line")
            for position, text in enumerate(line.split()):
                yield Word(position, text)

        table = Table(words, None, False, False, None)
        numbers, rows, buffers, errors = table.call(4, column(str, ["to be", "bad", "", "or"]))
        self.assertEqual(list(numbers), [0, 0, 3])
        self.assertEqual(table.columns.read(Reader(buffers), rows), [Word(0, "to"), Word(1, "be"), Word(0, "or")])
        self.assertEqual(errors, [(1, "a bad line")])
        self.assertEqual([node[0] for node in table.results()], ["position", "text"])

    def test_a_row_that_does_not_fit_takes_all_rows_of_its_argument_with_it(self):
        def powers(x: int64) -> list[int64]:
            return [x, x**40]

        table = Table(powers, None, False, False, "power")
        numbers, rows, buffers, errors = table.call(3, column(int, [1, 9, 2]))
        self.assertEqual(list(numbers), [0, 0, 2, 2])
        self.assertEqual([row for row, _ in errors], [1])


if __name__ == "__main__":
    unittest.main()
