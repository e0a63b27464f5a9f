#!/usr/bin/env python3
"""What Spark gives: runs the cases of a folder in a real Spark and writes their `expected/`.

    spark_cases.py CASES [WORD]

A case is a folder with `case.toml` (sql, output_mode, streams, tables, settings), `input/<stream>/<k>.jsonl` and
`tables/<table>.jsonl`; `./x conformance CASES` runs the same case here and compares. With WORD only cases whose name has it.

Each stream is a folder of files of which a batch reads one, so batch k reads file k of every stream. The rows of a batch are
taken by foreachBatch, written as one JSON object per line, and sorted unless the case is `ordered`. `restart_after` stops the
query after that file without a batch that has no data; `drain_after` lets such batches run first.

Needs pyspark, which `./x toolchain` installs; knows nothing of Millstream.
"""

import base64
import json
import math
import os
import re
import shutil
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import types as T

# Settings that a case may change; each case begins with Spark's own.
SETTINGS = [
    "spark.sql.ansi.enabled",
    "spark.sql.streaming.multipleWatermarkPolicy",
    "spark.sql.streaming.noDataMicroBatches.enabled",
]
NO_DATA = SETTINGS[2]
COUNTERS = ["operatorName", "numRowsTotal", "numRowsUpdated", "numRowsRemoved", "numRowsDroppedByWatermark"]


def session(folder):
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def value(given, data_type):
    """A value of a row as the cases write it."""
    if given is None:
        return None
    if isinstance(data_type, T.StructType):
        return {field.name: value(given[at], field.dataType) for at, field in enumerate(data_type.fields)}
    if isinstance(data_type, T.ArrayType):
        return [value(item, data_type.elementType) for item in given]
    if isinstance(data_type, T.MapType):
        return {key(name, data_type.keyType): value(item, data_type.valueType) for name, item in given.items()}
    return leaf(given, data_type)


def key(given, data_type):
    written = leaf(given, data_type)
    return written if isinstance(written, str) else json.dumps(written)


def leaf(given, data_type):
    if isinstance(data_type, (T.DoubleType, T.FloatType)):
        if math.isnan(given):
            return "NaN"
        if math.isinf(given):
            return "Infinity" if given > 0 else "-Infinity"
        return given
    if isinstance(data_type, T.DecimalType):
        return format(given, "f")
    if isinstance(data_type, T.BinaryType):
        return base64.b64encode(bytes(given)).decode()
    if isinstance(data_type, T.DateType):
        return given.isoformat()
    if isinstance(data_type, (T.TimestampType, T.TimestampNTZType)):
        fraction = f".{given.microsecond:06}".rstrip("0") if given.microsecond else ""
        return given.isoformat()[:19] + fraction + "Z"
    return given if isinstance(given, (bool, int, str)) else str(given)


class Refused(Exception):
    """The query was refused, or failed; what it was is written."""


class Case:
    """One case on its way through Spark."""

    def __init__(self, spark, folder, scratch):
        self.spark, self.folder = spark, folder
        self.spec = tomllib.loads((folder / "case.toml").read_text())
        self.work = Path(tempfile.mkdtemp(dir=scratch))
        self.out = folder / "expected"
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        self.streams = self.spec.get("stream", [])
        counts = [len(list((folder / "input" / stream["name"]).iterdir())) for stream in self.streams]
        self.files = max(counts, default=0)
        self.placed, self.batches, self.progress, self.columns = 0, {}, [], None

    def run(self):
        for name in SETTINGS:
            self.spark.conf.unset(name)
        for name, given in self.spec.get("conf", {}).items():
            self.spark.conf.set(name, str(given).lower() if isinstance(given, bool) else str(given))
        no_data = self.spark.conf.get(NO_DATA)
        for stream in self.streams:
            (self.work / stream["name"]).mkdir()
        for table in self.spec.get("table", []):
            rows = self.spark.read.schema(table["schema"]).json(str(self.folder / "tables" / f"{table['name']}.jsonl"))
            rows.createOrReplaceTempView(table["name"])
        ends = {after: "restart" for after in self.spec.get("restart_after", [])}
        ends.update({after: "drain" for after in self.spec.get("drain_after", [])})
        try:
            for after in sorted(ends):
                self.spark.conf.set(NO_DATA, "false" if ends[after] == "restart" else no_data)
                self.live(after + 1)
            self.spark.conf.set(NO_DATA, no_data)
            self.live(self.files)
        except Refused:
            pass
        self.write()
        shutil.rmtree(self.work, ignore_errors=True)

    def place(self, until):
        """The files before that number, each a little newer than the one before it."""
        for number in range(self.placed, until):
            for stream in self.streams:
                target = self.work / stream["name"] / f"{number:05}.jsonl"
                hidden = target.with_name("." + target.name)
                shutil.copyfile(self.folder / "input" / stream["name"] / f"{number}.jsonl", hidden)
                os.utime(hidden, (1_700_000_000 + number * 10,) * 2)
                hidden.rename(target)
        self.placed = max(self.placed, until)

    def live(self, until):
        """One life of the query, until it has read the files before that number."""
        self.place(until)
        frame = self.refusing("analysis", self.frame)
        self.columns = [[field.name, field.dataType.simpleString()] for field in frame.schema.fields]
        writer = frame.writeStream.outputMode(self.spec["output_mode"]).foreachBatch(self.take)
        writer = writer.option("checkpointLocation", str(self.work / "checkpoint"))
        query = self.refusing("start", writer.start)
        try:
            query.processAllAvailable()
        except Exception as error:
            self.fail("run", error, batch=max(self.batches, default=-1) + 1)
        finally:
            self.progress.extend(query.recentProgress)
            query.stop()

    def frame(self):
        for stream in self.streams:
            rows = self.spark.readStream.schema(stream["schema"]).option("maxFilesPerTrigger", 1)
            rows = rows.json(str(self.work / stream["name"]))
            if mark := stream.get("watermark"):
                rows = rows.withWatermark(mark["column"], mark["delay"])
            if keys := stream.get("dedup"):
                within = keys.get("within_watermark")
                rows = (rows.dropDuplicatesWithinWatermark if within else rows.dropDuplicates)(keys["columns"])
            rows.createOrReplaceTempView(stream["name"])
        return self.spark.sql(self.spec["sql"])

    def take(self, frame, batch):
        rows = [value(row, frame.schema) for row in frame.collect()]
        lines = [json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for row in rows]
        self.batches[batch] = lines if self.spec.get("ordered") else sorted(lines)

    def refusing(self, phase, act):
        try:
            return act()
        except Exception as error:
            self.fail(phase, error)

    def fail(self, phase, error, batch=None):
        text = str(error)
        condition = getattr(error, "getCondition", lambda: None)() or ""
        if phase == "run":
            # The query's own error is inside of what tells that the stream has failed.
            inner = [word for word in re.findall(r"\[([A-Z_0-9]+(?:\.[A-Z_0-9]+)*)\]", text) if word != "STREAM_FAILED"]
            condition = inner[-1] if inner else condition
        lines = [f'phase = "{phase}"', *([] if batch is None else [f"batch = {batch}"])]
        lines += [f'error_class = "{condition}"', 'sqlstate = ""', f"gist = {json.dumps(text[:400])}"]
        (self.out / "error.toml").write_text("\n".join(lines) + "\n")
        raise Refused from error

    def write(self):
        if self.columns is not None:
            (self.out / "schema.json").write_text(json.dumps(self.columns, indent=2) + "\n")
        last = max(self.batches, default=-1)
        for batch in range(last + 1):
            text = "".join(line + "\n" for line in self.batches.get(batch, []))
            (self.out / f"{batch}.jsonl").write_text(text)
        if (self.out / "error.toml").exists():
            return
        reports = {}
        for report in (json.loads(report.json) for report in self.progress):
            if report["batchId"] not in reports or report["numInputRows"]:
                reports[report["batchId"]] = report
        read = iter(range(self.files))
        with open(self.out / "progress.jsonl", "w") as out:
            for batch in sorted(batch for batch in reports if batch <= last):
                out.write(json.dumps(told(reports[batch], read)) + "\n")


def told(report, read):
    """What a case tells of a batch's progress; `read` gives the number of the next file."""
    moved = any(source.get("startOffset") != source.get("endOffset") for source in report["sources"])
    operators = []
    for operator in report.get("stateOperators", []):
        told = {name: operator[name] for name in COUNTERS}
        dropped = (operator.get("customMetrics") or {}).get("numDroppedDuplicateRows")
        operators.append(told if dropped is None else {**told, "numDroppedDuplicateRows": dropped})
    watermark = report.get("eventTime", {}).get("watermark")
    return {
        "batchId": report["batchId"],
        "watermark": watermark and watermark.replace(".000Z", "Z"),
        "numInputRows": report["numInputRows"],
        "stateOperators": operators,
        "file": next(read, None) if moved else None,
    }


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: spark_cases.py CASES [WORD]")
    word = sys.argv[2] if len(sys.argv) == 3 else ""
    cases = sorted(path.parent for path in Path(sys.argv[1]).glob("*/case.toml") if word in path.parent.name)
    if not cases:
        sys.exit(f"{sys.argv[1]}: no case here{' whose name has ' + word if word else ''}")
    os.environ["TZ"] = "UTC"
    time.tzset()
    with tempfile.TemporaryDirectory(prefix="millstream-spark-cases-") as scratch:
        spark = session(scratch)
        for case in cases:
            begin = time.monotonic()
            Case(spark, case, scratch).run()
            refused = " refused" if (case / "expected" / "error.toml").exists() else ""
            print(f"{case.name}{refused} {time.monotonic() - begin:.1f} s", flush=True)
        spark.stop()
    print(f"spark cases: {len(cases)} written")


main()
