"""One stream into many tables: a row names its table, and each batch is in each of them once.

Start with ``task.py``: a task splits its rows by the route column and writes into all tables at once, in one budget of
memory. ``outbox.py`` is what the commit of the home asks: before its put the batch becomes a ``manifest.py``, a file
beside the home that names what each table is to get; the put decides the batch; then ``deliver.py`` brings it into each
table by that table's own coordinator, several ``at_once.py``, and a table whose ledger has the batch is left alone.
``tables.py`` opens and creates the tables, ``plan.py`` refuses what cannot be routed before the first row, ``spare.py``
tells cleaning which files a manifest still names, ``sums.py`` adds up the rows.

The home is a table without rows: its ledger decides, as that of every table does. May import ``write/``, ``commit/``,
``maintain/``, ``formats/``, ``storage/`` and ``core/``.
"""
