"""Iceberg tables of format version 2, through pyiceberg. The only room that imports it.

* ``format``, ``features``: opens and creates tables, and refuses by name what cannot be written safely.
* ``catalogs``, ``catalog_options``, ``file_io``: the catalog a table is found in, and its files through our stores.
* ``kept_text``, ``kept``, ``answers``: snapshots that are merely kept stay text, in files and in answers of REST.
* ``table`` puts the parts of the contract together; they share one ``handle``.
* ``files``, ``entries``, ``metrics``: data files: their paths, their statistics, their entries in commit messages.
* ``commits``, ``commit``, ``build``, ``prepared``: a commit, the manifests it writes, and the request it sends.
* ``ledger``, ``silent``: who wrote last, in table properties, and who left the ledger.
* ``scans``, ``read``, ``pruning``, ``file_scan``: splits of a snapshot, filters, and the rows of one file.
* ``upkeep``, ``expiry``, ``audit``, ``snapshot_info``, ``kinds``: history, expiry, checks, and what each file is.
* ``compacting``: live files, and proof that those which a compaction replaces are there.
* ``refs``: tags. ``manifests``, ``partitions``, ``types``: readers and conversions that the others share.
"""
