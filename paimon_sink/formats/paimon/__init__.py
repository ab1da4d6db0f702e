"""Paimon append tables without buckets, behind the contract of :mod:`paimon_sink.formats.contract`.

* ``format``, ``catalogs``, ``catalog_options``, ``features``: from options to a table, and what is refused;
* ``table``: an open table, put together from ``handle`` (what its parts share) and a part for each of its users;
* ``files``, with ``entries``, ``stats`` and ``types``: a task's data files and their manifest entries;
* ``commits``, ``commit``, ``head``: one commit through all its attempts. ``chain`` tells whether a snapshot is in,
  ``merging`` keeps the lists of manifests short, ``compacting`` puts files in place of others, and ``claims`` are for
  a ledger that other engines may expire;
* ``scans``, with ``predicates``: splits and live files of the newest snapshot;
* ``upkeep``, with ``snapshot_info``, ``expiry``, ``audit`` and ``kinds``: history, expiry, and which file is what;
* ``refs``, with ``tags``: names for snapshots;
* ``snapshots``, ``schemas``, ``manifests``, ``numbered``, ``file_io``: the table's metadata files on our storage.
"""
