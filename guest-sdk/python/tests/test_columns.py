"""Columns go to buffers and come back."""

import datetime
import math
import unittest
from array import array
from dataclasses import dataclass
from decimal import Decimal
from typing import Optional

from millstream import types
from millstream.types import Reader, type_of


@dataclass
class Inner:
    at: types.timestamp
    bytes: types.binary


@dataclass
class Everything:
    flag: bool
    text: Optional[str]
    numbers: list[Optional[int]]
    inner: Inner


def back(hint, values):
    kind, _ = type_of(hint)
    buffers = []
    kind.write(list(values), True, buffers)
    reader = Reader(buffers)
    read = list(kind.read(reader, len(values)))
    assert next(reader._next, None) is None, "a buffer was not read"
    return read


class Columns(unittest.TestCase):
    def test_every_type_comes_back_over_its_full_range(self):
        for hint, values in [
            (bool, [True, False, None] * 7),
            (types.int8, [-128, 127, None]),
            (types.int16, [-(2**15), 2**15 - 1, None]),
            (types.int32, [-(2**31), None, 2**31 - 1]),
            (int, [-(2**63), 2**63 - 1, None, 0]),
            (types.uint8, [0, 255]),
            (types.uint16, [0, 65535]),
            (types.uint32, [0, 2**32 - 1]),
            (types.uint64, [0, 2**64 - 1, None]),
            (float, [0.1, -0.0, math.inf, None]),
            (str, ["", "plain", None, "日本 🦀", "\0"]),
            (bytes, [b"", None, b"\xff\x00"]),
            (types.date, [-(2**31), 2**31 - 1]),
            (types.timestamp, [-(2**63), 2**63 - 1, None]),
            (datetime.date, [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
            (
                datetime.datetime,
                [datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc), None]
                + [datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, datetime.timezone.utc)],
            ),
            (list[Optional[str]], [["a", None], None, [], ["bc"]]),
            (Everything, [Everything(True, None, [1, None], Inner(3, b"x")), None]),
            (list[Optional[Everything]], [[None, Everything(False, "é", [], Inner(-1, b""))], None, []]),
        ]:
            self.assertEqual(back(hint, values), values, hint)
            self.assertEqual(back(hint, []), [], hint)

    def test_decimals_are_exact_and_rounded_half_up(self):
        most = Decimal("9" * 28 + "." + "9" * 10)
        hint = types.decimal(38, 10)
        least = most.copy_negate()
        self.assertEqual(back(hint, [most, least, None, 3]), [most, least, None, Decimal(3)])
        money = types.decimal(9, 2)
        self.assertEqual(back(money, [Decimal("0.125"), Decimal("-0.125")]), [Decimal("0.13"), Decimal("-0.13")])
        for wrong in (Decimal("1e8"), Decimal("NaN"), 1.5):
            with self.assertRaises((ValueError, TypeError)):
                back(money, [wrong])

    def test_values_that_do_not_fit_are_refused(self):
        for hint, value in [
            (types.int8, 128),
            (int, 2**63),
            (types.uint64, -1),
            (int, 1.5),
            (str, b"bytes"),
            (str, "\ud800"),
            (bool, 1),
            (list[int], [None]),
            (Inner, Everything),
        ]:
            with self.assertRaises((TypeError, OverflowError, ValueError), msg=hint):
                back(hint, [value])

    def test_buffers_are_those_of_the_interfaces_document(self):
        buffers = []
        type_of(str)[0].write(["to be", None, "or"], True, buffers)
        self.assertEqual(buffers, [b"\x05", array("i", [0, 5, 5, 7]).tobytes(), b"to beor"])

    def test_what_is_no_type_is_told(self):
        for hint in (complex, Decimal, Optional[complex], dict):
            with self.assertRaises(TypeError):
                type_of(hint)


if __name__ == "__main__":
    unittest.main()
