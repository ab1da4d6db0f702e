"""Table formats behind one contract: what the other rooms know of a table, and one package for each format.

Start with ``contract.py``: the roles of a table that an adapter implements. ``values.py`` and ``ledger.py`` are the
values that cross it, ``audit.py`` and ``expiry.py`` what an adapter shows of a whole table and of its snapshots.
``registry.py`` opens a format by its name, ``registration.py`` is how other packages add one. Adapters share
``merging.py`` (which manifests to merge), ``bounds.py`` (which files a filter rules out), ``parquet.py`` (the rows of
plain files), ``versions.py`` (what to say of a snapshot that is not there), ``replacing.py`` (what a compaction
checks), ``side_files.py`` (caches and deletion intents beside a table) and ``catalog_names.py``. The adapters are
``paimon/``, ``iceberg/`` and ``memory/``.

May import ``storage/`` and ``core/``. Each format's library is imported in its own package only; nobody outside this
room asks which format a table has.
"""
