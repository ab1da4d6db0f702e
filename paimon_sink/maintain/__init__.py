"""What is done with a table beside writing to it: compact, expire, clean, verify, and reading its history.

``compact.py`` rewrites small files (``groups.py`` chooses which, in pure functions), ``expire.py`` chooses snapshots to
remove, ``clean.py`` deletes orphans, ``verify.py`` checks a table against its metadata and changes nothing.
``after_commit.py`` runs small compactions and expiries right after a batch. ``reading.py`` reads a table for those who
watch it, ``history.py`` turns that into figures, in pure functions.

May import ``write/``, ``commit/``, ``formats/``, ``storage/`` and ``core/``: a compaction is a write and a commit, by
the same tasks and the same coordinator as any batch.
"""
