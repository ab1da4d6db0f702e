"""The coordinator: the messages of a batch become one snapshot, exactly once, and listeners are notified of it.

Start with ``coordinator.py``: ``Coordinator.commit`` makes attempts until the batch is in or is refused. ``fold.py``
makes a plan of the tasks' messages, ``decide.py`` is the decision table of one attempt; both are pure. ``presence.py``
checks that the data files are still there, ``unused.py`` deletes those that a replay or a lost compaction left.
``dispatch.py`` notifies listeners and ``journal.py`` is what it records of them in the ledger. ``figures.py`` computes
the ``pwc.*`` properties of a snapshot, ``sentences.py`` words what errors advise.

May import ``formats/`` and ``core/``. It knows no format and no store: both are behind ``formats/contract.py``.
"""
