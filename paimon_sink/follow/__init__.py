"""Following a table as a stream: which rows come next, each once, whatever happens to the query or the table.

Start with ``enumerator.py``: it answers where a batch ends and what is in one, from two offsets and snapshots that
never change. ``offset.py`` is what a checkpoint keeps. ``admission.py`` says how much a batch takes, ``plans.py`` which
files of a snapshot those are, and ``pin.py`` holds expiry back.

May import ``read/``, ``formats/`` and ``core/``.
"""
