"""JARs of the JVM connectors, fetched with Maven once and kept outside the repository.

python -m integration.jars          fetches all of them and prints where they are
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from integration.cache import cache

__all__ = [
    "DELTA",
    "ICEBERG_AWS",
    "ICEBERG_SPARK",
    "PAIMON_FLINK",
    "PAIMON_S3",
    "PAIMON_SPARK",
    "SQLITE_JDBC",
    "Jar",
    "JarError",
]

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


class JarError(RuntimeError):
    """A JAR cannot be had here."""


@dataclass(frozen=True)
class Jar:
    group: str
    artifact: str
    version: str

    @property
    def variable(self) -> str:
        """The environment variable that names a file to take instead, such as one that you have built."""
        return "PWC_JAR_" + self.artifact.split("_")[0].upper().replace("-", "_").replace(".", "_")

    def path(self) -> Path:
        """Where it lies. Fetches it when it is not there yet."""
        named = os.environ.get(self.variable)
        if named:
            if not Path(named).is_file():
                raise JarError(f"{self.variable} names {named}, which is not a file.")
            return Path(named)
        file = cache("jars") / f"{self.artifact}-{self.version}.jar"
        if not file.is_file():
            self._fetch(file)
        return file

    def _fetch(self, file: Path) -> None:
        maven = shutil.which("mvn")
        if maven is None:
            raise JarError(f"{self} is not in {file.parent} and there is no mvn to fetch it. Install Maven.")
        file.parent.mkdir(parents=True, exist_ok=True)
        where = [f"-Dartifact={self}", f"-DoutputDirectory={file.parent}"]
        done = subprocess.run(
            [maven, "--batch-mode", "--quiet", _COPY, *where],
            cwd=file.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not file.is_file():
            lines = (done.stdout + done.stderr).splitlines()
            errors = [line for line in lines if line.startswith("[ERROR]") and line.strip() != "[ERROR]"]
            raise JarError(
                f"Maven cannot fetch {self}: {errors[0] if errors else 'no file came'}. Put the file at {file} or name "
                f"it in {self.variable}."
            )

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


PAIMON_SPARK = Jar("org.apache.paimon", "paimon-spark-4.1_2.13", "2.0.0")
PAIMON_FLINK = Jar("org.apache.paimon", "paimon-flink-2.0", "1.4.2")
PAIMON_S3 = Jar("org.apache.paimon", "paimon-s3", "1.4.2")
ICEBERG_SPARK = Jar("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0")
ICEBERG_AWS = Jar("org.apache.iceberg", "iceberg-aws-bundle", "1.12.0")
SQLITE_JDBC = Jar("org.xerial", "sqlite-jdbc", "3.50.3.0")
DELTA = (
    Jar("io.delta", "delta-spark_4.1_2.13", "4.4.0"),
    *(Jar("io.delta", f"delta-{part}", "4.4.0") for part in ("storage", "kernel-api", "kernel-defaults")),
    Jar("io.delta", "delta-kernel-unitycatalog", "4.4.0"),
    *(Jar("io.unitycatalog", f"unitycatalog-{part}", "0.6.0") for part in ("client", "hadoop")),
)
"""Of Delta, and what it wants beside what Spark brings."""


if __name__ == "__main__":
    for wanted in (PAIMON_SPARK, PAIMON_FLINK, PAIMON_S3, ICEBERG_SPARK, ICEBERG_AWS, SQLITE_JDBC, *DELTA):
        try:
            print(f"{wanted}  {wanted.path()}")
        except JarError as error:
            sys.exit(str(error))
