"""A Kafka broker in KRaft mode, and Spark's Kafka source: their JARs by Maven, kept outside the repository.

The broker is Kafka's own, one process that is controller and broker. Nothing of it is changed but where it listens.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.cache import cache
from integration.jars import Jar, JarError

__all__ = ["SPARK_KAFKA", "Broker", "broker"]

KAFKA = "4.1.1"
SPARK_KAFKA = (
    Jar("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.3"),
    # It has no Kafka in it and hardly changes; that of Spark 4.0 does where a registry lacks that of 4.1.
    Jar("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    Jar("org.apache.kafka", "kafka-clients", "3.9.1"),
    Jar("org.apache.commons", "commons-pool2", "2.12.1"),
)
"""What ``--packages`` would bring, for Spark 4.1."""

_POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>pwc</groupId><artifactId>broker</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA}</version>
</dependency><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{KAFKA}</version>
</dependency></dependencies></project>"""
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class Broker:
    def __init__(self, address: str, libraries: Path) -> None:
        self.address = address
        self._libraries = libraries

    def run(self, tool: str, *arguments: str, given: str = "") -> str:
        """One of Kafka's own tools, such as kafka.tools.ConsoleProducer."""
        done = subprocess.run(
            ["java", "-cp", f"{self._libraries}/*", tool, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout


@contextmanager
def broker(directory: Path) -> Iterator[Broker]:
    """One that listens on this machine only and is gone afterwards, with all that it held."""
    libraries = _libraries()
    port, controller = _free_port(), _free_port()
    settings = directory / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n"
        f"log.dirs={directory / 'log'}\nnum.partitions=2\noffsets.topic.replication.factor=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
    )
    found = Broker(f"127.0.0.1:{port}", libraries)
    cluster = uuid.uuid4().hex[:22]
    found.run("kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(settings))
    with (directory / "broker.log").open("w") as log:
        process = subprocess.Popen(
            ["java", "-Xmx512m", "-cp", f"{libraries}/*", "kafka.Kafka", str(settings)], stdout=log, stderr=log
        )
        try:
            _wait_for(port, process, directory / "broker.log")
            yield found
        finally:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 180
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"The broker ended: {log.read_text()[-2000:]}")
        with socket.socket() as asked:
            asked.settimeout(1)
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"The broker does not answer: {log.read_text()[-2000:]}")


def _libraries() -> Path:
    directory = cache("jars") / f"kafka-{KAFKA}"
    if directory.is_dir():
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        raise JarError(f"Kafka is not in {directory} and there is no mvn to fetch it. Install Maven.")
    building = directory.with_suffix(".new")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    (building / "pom.xml").write_text(_POM)
    print(f"Fetching Kafka into {directory} (once) …", file=sys.stderr, flush=True)
    done = subprocess.run(
        [maven, "--batch-mode", "--quiet", _COPY, "-DincludeScope=runtime", f"-DoutputDirectory={building}"],
        cwd=building,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise JarError(f"Maven cannot fetch Kafka {KAFKA}: {(done.stdout + done.stderr)[-500:]}")
    os.replace(building, directory)
    return directory


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
