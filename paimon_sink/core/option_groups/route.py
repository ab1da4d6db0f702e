"""Options of rows that choose their tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from paimon_sink.core import option_values as values
from paimon_sink.core.names import parse_table_name
from paimon_sink.core.option_fields import STREAMS, WRITES, OptionGroup, Section, option, option_family
from paimon_sink.core.regions import RegionBounds
from paimon_sink.core.routes import database_names, table_patterns

__all__ = ["RouteOptions"]


class RouteOptions(OptionGroup):
    """Which tables rows may choose, and what decides their batch."""

    SECTION = Section.ROUTES

    column: str | None = option(
        "routeColumn",
        parse=values.column,
        doc=(
            "Instead of `table`: the column that names each row's table, as `table` or `database.table`. It is not "
            "written. [Many tables](regions.md)."
        ),
        example="target",
        purposes=WRITES,
    )
    databases: tuple[str, ...] = option(
        "route.database",
        parse=database_names,
        unset=(),
        doc=(
            "The database of the tables that rows may choose. Several, separated by commas: those that rows may name; "
            "the first is that of a name alone, and of the home."
        ),
        example="lake",
        purposes=WRITES,
        switch="routeColumn",
    )
    patterns: tuple[str, ...] = option(
        "route.tables",
        parse=table_patterns,
        unset=(),
        default_note="any",
        doc="The tables that rows may choose: names, separated by commas. `*` stands for any characters.",
        example="orders, customer_*",
        purposes=WRITES,
        switch="routeColumn",
    )
    max_tables: int = option(
        "route.maxTables",
        parse=values.count(at_least=1, at_most=100_000),
        default="500",
        doc="A batch whose rows choose more tables than this fails: a wrong column must not create thousands.",
        example="50",
        purposes=WRITES,
        switch="routeColumn",
    )
    on_unknown: Literal["fail", "quarantine"] = option(
        "route.onUnknown",
        parse=values.choice("fail", "quarantine"),
        default="fail",
        doc=(
            "A row whose route is null, no name of a table, or one that it may not choose: `fail` the batch, or put "
            "the row into the `quarantine`. It is never dropped."
        ),
        example="quarantine",
        purposes=WRITES,
        switch="routeColumn",
    )
    home: tuple[str, str] | None = option(
        "route.home",
        parse=parse_table_name,
        default_note="`<database>.pwc_routes`",
        doc="The table whose ledger decides a routed batch. It has no rows, and is created when it is missing.",
        example="lake.pwc_routes",
        purposes=WRITES,
        switch="routeColumn",
    )
    threads: int = option(
        "route.commitThreads",
        parse=values.count(at_least=1, at_most=128),
        default="8",
        doc="How many tables are committed at once.",
        example="32",
        purposes=WRITES,
        switch="routeColumn",
    )
    regional: bool = option(
        "regional",
        parse=values.boolean,
        default="false",
        doc=(
            "Carry a table whose commit fails instead of failing the batch: the others go on, and it gets its batches, "
            "in order and once, when it takes them again. [Bounded](regions.md#tables-that-fail-for-a-while)."
        ),
        example="true",
        purposes=STREAMS,
        switch="routeColumn",
        instead="a batch write has no next batch that could bring in what was carried, so leave it out.",
    )
    regional_by: str = option(
        "regional.by",
        parse=values.region_kind,
        default="table",
        doc="What may be carried: a `table`. Partitions of one are not there yet.",
        example="table",
        purposes=STREAMS,
        switch="regional",
    )
    regional_max_consecutive: int = option(
        "regional.maxConsecutive",
        parse=values.count(at_least=1, at_most=1000),
        default="10",
        doc="A table that was carried so many batches in a row stops the query until all that is carried is delivered.",
        example="3",
        purposes=STREAMS,
        switch="regional",
    )
    regional_max_age_ms: int = option(
        "regional.maxAge",
        parse=values.duration_ms(at_least="1s", at_most="20h"),
        default="45m",
        doc="The same where the oldest batch that is carried is as old as this.",
        example="10m",
        purposes=STREAMS,
        switch="regional",
    )
    regional_max_bytes: int = option(
        "regional.maxBytes",
        parse=values.size_bytes(at_least="1b", at_most="1024gb"),
        default="1gb",
        doc="The same where so much is carried.",
        example="10gb",
        purposes=STREAMS,
        switch="regional",
    )
    regional_max_share: float = option(
        "regional.maxShare",
        parse=values.share,
        default="0.3",
        doc="The same where a larger share of the tables is carried.",
        example="0.5",
        purposes=STREAMS,
        switch="regional",
    )
    regional_timeout_ms: int = option(
        "regional.timeout",
        parse=values.duration_ms(at_least="1ms", at_most="1h"),
        default="30s",
        doc="A table that does not answer for so long is carried.",
        example="10s",
        purposes=STREAMS,
        switch="regional",
    )
    per_table: Mapping[str, str] = option_family(
        "route.",
        doc=(
            "`route.<table>.<option>`: an option for one table alone, such as `partitionBy`, `table.*`, "
            "`targetFileSize`, `watermarkColumn`, `check.*`, `expire.*`, `listeners`."
        ),
        example="route.orders.partitionBy=day",
        purposes=WRITES,
    )

    @property
    def bounds(self) -> RegionBounds:
        return RegionBounds(
            self.regional_max_consecutive, self.regional_max_age_ms, self.regional_max_bytes, self.regional_max_share
        )
