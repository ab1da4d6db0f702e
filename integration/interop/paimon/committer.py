"""Java Paimon's own commit, called without Spark: a commit takes milliseconds, so that races happen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from tests.support.lake import Lake

__all__ = ["JavaCommitter"]


@dataclass
class JavaCommitter:
    spark: SparkSession
    lake: Lake

    @cached_property
    def _paimon(self) -> Any:
        jvm: Any = self.spark._jvm
        return jvm.org.apache.paimon

    @cached_property
    def _table(self) -> Any:
        options = self._paimon.options.Options()
        options.set("warehouse", self.lake.options["warehouse"])
        context = self._paimon.catalog.CatalogContext.create(options)
        catalog = self._paimon.catalog.CatalogFactory.createCatalog(context)
        return catalog.getTable(self._paimon.catalog.Identifier.create(*self.lake.table.split(".")))

    def append(self, row: int, *, day: str = "monday") -> None:
        """One row in one commit. The number must be above 2^32: smaller ones reach the JVM as another type."""
        # By its class: Py4J does not find the default method of the interface.
        builder = self._paimon.table.sink.BatchWriteBuilderImpl(self._table)
        values = self._paimon.data.GenericRow(2)
        values.setField(0, row)
        values.setField(1, self._paimon.data.BinaryString.fromString(day))
        write = builder.newWrite()
        commit = builder.newCommit()
        try:
            write.write(values)
            commit.commit(write.prepareCommit())
        finally:
            write.close()
            commit.close()
