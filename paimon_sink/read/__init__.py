"""Reading the newest snapshot: which splits to read, and which of their rows.

Start with ``scan.py``: it collects the conditions of a read's options, plans splits and reads one. ``partition.py``
makes conditions of the options ``partition.*``, ``where.py`` of the option ``where``. ``pruning.py`` makes filters of
them, by which a format leaves out files that hold no such row; the rows themselves are compared in
``core/condition_rows.py``.

May import ``formats/`` and ``core/``.
"""
