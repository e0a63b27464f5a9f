"""Write Millstream plugins in Python: functions with type hints that SQL can call.

    from millstream import float64, int64, scalar_function

    @scalar_function
    def heat(level: int64, visits: int64) -> float64:
        return 0.1 * level + 0.9 * visits

`README.md` beside this package is the guide.
"""

from . import log
from .aggregates import aggregate_function
from .errors import CallError, Internal, InvalidInput, RowError, Unavailable
from .functions import scalar_function, table_function
from .migrations import migration
from .processors import Context, list_state, map_state, processor, value_state
from .sources import Limits, Page, source
from .types import (
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
    local_timestamp,
    timestamp,
    uint8,
    uint16,
    uint32,
    uint64,
    utf8,
)

__all__ = [
    "CallError",
    "Context",
    "Internal",
    "InvalidInput",
    "Limits",
    "Page",
    "RowError",
    "Unavailable",
    "aggregate_function",
    "binary",
    "boolean",
    "date",
    "decimal",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "list_state",
    "local_timestamp",
    "log",
    "map_state",
    "migration",
    "processor",
    "scalar_function",
    "source",
    "table_function",
    "timestamp",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "utf8",
    "value_state",
]
