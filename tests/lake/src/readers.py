"""Reads and writes tables as others would: one request per line, one answer per line, both JSON."""

import json
import os
import sys

spark = None


def session():
    global spark
    if spark is None:
        from pyspark.sql import SparkSession

        spark = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.files.openCostInBytes", "0")
            .config("spark.driver.memory", "600m")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )
    return spark


def with_spark(path, format, schema=None, stream=False):
    reader = session().read.format(format)
    if schema:
        reader = reader.schema(schema)
    return [json.dumps(row.asDict(recursive=True), default=str, sort_keys=True) for row in reader.load(path).collect()]


def with_spark_stream(path, format, schema):
    spark = session()
    got = []
    query = (
        spark.readStream.format(format).schema(schema).load(path)
        .writeStream.foreachBatch(lambda frame, batch: got.extend(frame.collect()))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    return [json.dumps(row.asDict(recursive=True), default=str, sort_keys=True) for row in got]


def with_delta(path, version=None, storage=None):
    from deltalake import DeltaTable

    rows = DeltaTable(path, version=version, storage_options=storage).to_pyarrow_table().to_pylist()
    return [json.dumps(row, default=str, sort_keys=True) for row in rows]


def about_delta(path):
    from deltalake import DeltaTable

    table = DeltaTable(path)
    metadata = table.metadata()
    return {
        "version": table.version(),
        "partition_columns": metadata.partition_columns,
        "files": len(table.file_uris()),
        "operations": [entry.get("operation") for entry in table.history()],
        "schema": json.loads(table.schema().to_json()),
    }


def write_delta(path, columns, mode="append", partition_by=None, batches=1):
    import pyarrow
    from deltalake import write_deltalake

    table = pyarrow.table(columns)
    for _ in range(batches):
        write_deltalake(path, table, mode=mode, partition_by=partition_by)
    return None


def delete_delta(path, predicate):
    from deltalake import DeltaTable

    DeltaTable(path).delete(predicate)
    return None


def optimize_delta(path):
    from deltalake import DeltaTable

    DeltaTable(path).optimize.compact()
    return None


def checkpoint_delta(path):
    from deltalake import DeltaTable

    DeltaTable(path).create_checkpoint()
    return None


def main():
    # What libraries print is not an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": globals()[request.pop("do")](**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()
    if spark is not None:
        spark.stop()


main()
