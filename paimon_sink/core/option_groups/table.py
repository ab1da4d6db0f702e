"""Options that say where a table is."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_sink.core import option_values as values
from paimon_sink.core.names import parse_table_name
from paimon_sink.core.option_fields import WRITES, OptionGroup, Section, declarations, option, option_family
from paimon_sink.core.option_secrets import Masked

__all__ = ["MAIN_BRANCH", "TableOptions"]

MAIN_BRANCH = "main"
_AWS = "AWS environment"


class TableOptions(OptionGroup):
    """Where the table is, how its files are reached, and what it is made like when it is missing."""

    SECTION = Section.TABLE

    warehouse: str | None = option(
        "warehouse",
        parse=values.location,
        doc=(
            "Where tables live. Goes together with `table`. `~` is the home directory of whoever runs the driver; a "
            "relative path is taken in local mode alone."
        ),
        example="s3://lake/warehouse",
    )
    name: tuple[str, str] | None = option(
        "table",
        parse=parse_table_name,
        doc="The table, as `database.table`. Back-quote a name that contains a dot.",
        example="sales.orders",
    )
    """Database and table."""
    path: str | None = option(
        "path",
        parse=values.location,
        doc="Instead of `warehouse` and `table`: the table's own location, as in `.start(path)` and `.save(path)`.",
        example="s3://lake/warehouse/sales.db/orders",
    )
    table_format: str = option(
        "tableFormat",
        parse=values.word,
        default="paimon",
        doc="The table format: `paimon`, or `iceberg` with `pip install 'paimon-sink[iceberg]'`.",
        example="paimon",
    )
    catalog: Mapping[str, str] = option_family(
        "catalog.",
        doc=(
            "Handed to the format's own catalog, under its own names; one it does not know is refused. None: a "
            "filesystem catalog for Paimon, a SQLite file in a local warehouse for Iceberg."
        ),
        example="catalog.type=rest",
    )
    branch: str = option(
        "branch",
        parse=values.branch,
        default=MAIN_BRANCH,
        doc="The branch to write to or read from. Only for Iceberg; a branch that is missing grows out of `main`.",
        example="audit",
    )
    s3_endpoint: str | None = option(
        "s3.endpoint",
        parse=values.location,
        default_note=_AWS,
        doc="Address of the S3 service.",
        example="http://127.0.0.1:8333",
    )
    s3_access_key_id: str | None = option(
        "s3.access-key-id",
        parse=values.plain_text,
        default_note=_AWS,
        doc="Access key.",
        example="AKIA...",
        secret=True,
    )
    s3_secret_access_key: str | None = option(
        "s3.secret-access-key",
        parse=values.plain_text,
        default_note=_AWS,
        doc="Secret of the access key.",
        example="...",
        secret=True,
    )
    s3_session_token: str | None = option(
        "s3.session-token",
        parse=values.plain_text,
        default_note=_AWS,
        doc="Token of a temporary login.",
        example="...",
        secret=True,
    )
    s3_region: str | None = option(
        "s3.region", parse=values.plain_text, default_note=_AWS, doc="Region of the bucket.", example="eu-central-1"
    )
    create_table: bool = option(
        "createTable",
        parse=values.boolean,
        default="true",
        doc="Create the table and its database when they are missing.",
        example="false",
        purposes=WRITES,
    )
    partition_by: tuple[str, ...] = option(
        "partitionBy",
        parse=values.columns,
        doc=(
            "Columns to partition a new table by, separated by commas, or for Iceberg transforms of them: "
            "`years(c)`, `months(c)`, `days(c)`, `hours(c)`, `bucket(16, c)`, `truncate(4, c)`. Back-quote a name "
            "that contains a comma or parentheses."
        ),
        example="dt, region",
        purposes=WRITES,
        unset=(),
    )
    table_properties: Mapping[str, str] = option_family(
        "table.", doc="Properties of a table we create.", example="table.file.format=parquet", purposes=WRITES
    )

    @property
    def database(self) -> str | None:
        return None if self.name is None else self.name[0]

    @property
    def table(self) -> str | None:
        return None if self.name is None else self.name[1]

    @property
    def label(self) -> str:
        """What sentences call the table: ``sales.orders``, or its location."""
        return self.path if self.path is not None else f"{self.database}.{self.table}"

    @property
    def storage(self) -> Mapping[str, str]:
        """The options ``s3.*`` that were given, under their full names."""
        given = ((entry.key, getattr(self, name)) for name, entry in declarations(TableOptions).items())
        return Masked({key: value for key, value in given if key.startswith("s3.") and value is not None})
