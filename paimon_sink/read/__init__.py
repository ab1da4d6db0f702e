"""Reading a table: which snapshot, which splits of it, in which tasks, and which of their rows.

Start with ``scan.py``: a scan finds the snapshot or range that the options ask for, plans tasks, and reads one.
``balance.py`` shares splits out over tasks. ``partition.py`` makes conditions of the options ``partition.*``,
``where.py`` of the option ``where``. ``pruning.py`` makes filters of them, by which a format leaves out files that hold
no such row; the rows themselves are compared in ``core/condition_rows.py``.

May import ``formats/`` and ``core/``.
"""
