"""Protections of where rows go and which columns they come from."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["PLACING_MUTANTS"]

PLACES = "tests/core/test_places.py"
CONTRACT = "tests/formats/test_contract.py::TestPlaces"
CATALOGS = "tests/formats/test_catalog_options.py"
COLUMNS = "tests/core/test_columns.py"
SECRETS = "tests/core/test_options_secrets.py"
PAIMON = "paimon_sink/formats/paimon/catalog_options.py"
ICEBERG = "paimon_sink/formats/iceberg/catalog_options.py"

PLACING_MUTANTS = (
    Mutant(
        "unknown-catalog-name-ignored",
        "a name that no Paimon catalog has is refused",
        PAIMON,
        "elif name not in _OF_REST and not name.startswith(_HEADER):",
        "elif False:",
        (f"{CATALOGS}::test_an_unknown_name_is_refused_with_the_nearest",),
    ),
    Mutant(
        "metastore-ignored",
        "catalog.metastore names the kind of catalog as catalog.type does",
        PAIMON,
        "for name in (_TYPE, _METASTORE) if name in properties]",
        "for name in (_TYPE,) if name in properties]",
        (f"{CATALOGS}::test_metastore_is_the_same_as_type",),
    ),
    Mutant(
        "rest-name-without-rest",
        "an address of a REST catalog is refused where a directory would be written",
        PAIMON,
        "        elif kind == FILESYSTEM:\n",
        '        elif kind == "no such kind":\n',
        (f"{CATALOGS}::test_a_name_of_a_rest_catalog_is_refused_without_one",),
    ),
    Mutant(
        "rest-without-credentials",
        "a REST catalog without credentials is a sentence",
        PAIMON,
        "    if not provider:\n",
        "    if provider is None:\n",
        (f"{CATALOGS}::test_a_rest_catalog_that_cannot_be_reached_like_this_is_a_sentence",),
    ),
    Mutant(
        "iceberg-server-name-for-a-file",
        "a credential is refused where the catalog would be a file in the warehouse",
        ICEBERG,
        "if embedded and name not in",
        "if not embedded and name not in",
        (f"{CATALOGS}::test_a_name_of_a_server_is_refused_where_the_catalog_would_be_a_file",),
    ),
    Mutant(
        "home-not-expanded",
        "~ is a home directory and never a directory of that name",
        "paimon_sink/core/places.py",
        '    elif path.startswith("~"):\n        path = os.path.expanduser(path)\n',
        '    elif path.startswith("~"):\n        path = "./" + path\n',
        (f"{PLACES}::test_a_home_directory_is_expanded_wherever_spark_runs",),
    ),
    Mutant(
        "relative-path-on-a-cluster",
        "a relative path is refused where it would be many places",
        "paimon_sink/core/places.py",
        "    if directory is None:\n",
        '    directory = directory or "."\n    if not directory:\n',
        (f"{PLACES}::test_a_relative_path_is_refused_together_with_all_else_where_it_would_be_many_places",),
    ),
    Mutant(
        "path-settled-in-each-process",
        "a path is settled once and travels settled",
        "paimon_sink/core/options.py",
        "        parsed = replace(parsed, table=_placed(parsed.table, directory, given))\n",
        "        _placed(parsed.table, directory, given)\n",
        (f"{PLACES}::test_a_settled_path_stays_the_same_in_a_process_with_another_home",),
    ),
    Mutant(
        "query-string-shown",
        "a location with a query string is refused and not shown",
        "paimon_sink/core/option_values.py",
        "    if has_query(text):\n",
        "    if False:\n",
        (f"{SECRETS}::test_a_location_with_a_query_string_is_refused_without_showing_it",),
    ),
    Mutant(
        "columns-alike-created",
        "no table is created with columns that only case tells apart",
        "paimon_sink/formats/registry.py",
        "        if not case_sensitive:\n",
        "        if False:\n",
        (f"{CONTRACT}::test_columns_that_differ_only_in_case_are_refused_before_the_table_is_made",),
    ),
    Mutant(
        "read-cast-in-silence",
        "a column is read as another type only when every value is kept",
        "paimon_sink/core/columns.py",
        "    elif cast_problem(target.type, asked.type) is not None:\n",
        "    elif False:\n",
        (f"{COLUMNS}::test_what_the_table_does_not_have_is_refused_by_name",),
    ),
    Mutant(
        "unknown-field-is-null",
        "a field that a struct does not have is refused",
        "paimon_sink/core/columns.py",
        "        if field.name not in names:\n",
        "        if False:\n",
        (f"{COLUMNS}::test_what_the_table_does_not_have_is_refused_by_name",),
    ),
)
