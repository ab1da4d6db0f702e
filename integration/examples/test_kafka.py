"""examples/kafka_to_table.py on a real broker, with Spark's own Kafka source, on Spark 4.1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.kafka import SPARK_KAFKA, Broker, broker
from tests.support.lake import Lake

RECIPE = Path(__file__).parents[2] / "examples" / "kafka_to_table.py"
ORDERS = [json.dumps({"id": number, "day": f"2026-11-1{number % 7}", "amount": number * 1.5}) for number in range(200)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp("kafka")) as found:
        yield found


def produce(kafka: Broker, topic: str, messages: list[str]) -> None:
    where = ["--bootstrap-server", kafka.address, "--topic", topic]
    kafka.run("org.apache.kafka.tools.ConsoleProducer", *where, given="\n".join(messages) + "\n")


def run_the_recipe(kafka: Broker, topic: str, directory: Path) -> None:
    jars = ",".join(str(jar.path()) for jar in SPARK_KAFKA)
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--master local[2] --jars {jars} pyspark-shell"}
    command = [sys.executable, str(RECIPE), kafka.address, topic, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]


def ids(directory: Path, table: str) -> list[int]:
    lake = Lake({"warehouse": f"{directory}/lake"}, table=table)
    return sorted(row["id"] for row in lake.read())


def test_each_message_is_in_the_table_once_and_a_broken_one_in_the_quarantine(kafka: Broker, tmp_path: Path) -> None:
    produce(kafka, "orders", [*ORDERS[:100], "no order"])
    run_the_recipe(kafka, "orders", tmp_path)

    produce(kafka, "orders", ORDERS[100:])
    run_the_recipe(kafka, "orders", tmp_path)
    # As after a crash between our commit and Spark's own: the last batch is replayed.
    last = max((tmp_path / "checkpoint" / "commits").iterdir(), key=lambda file: (file.name.isdigit(), file.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    run_the_recipe(kafka, "orders", tmp_path)

    assert ids(tmp_path, "sales.orders") == list(range(200))
    assert len(ids(tmp_path, "sales.bad_orders")) == 1
