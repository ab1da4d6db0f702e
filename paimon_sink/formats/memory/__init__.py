"""Tables in this process: a third implementer of the contract, and a working fake for whoever tests a job or listener.

``memory_lake()`` opens a warehouse, and ``tableFormat=memory`` with its options reads and writes there. Snapshots are
frozen Python values, a commit is a compare-and-swap, data files are real Parquet. Nothing outlives the lake.

* ``lake``: the lakes that are open, and hands on their tables: roll back, drop, lose the ledger;
* ``format``: options to tables; ``table``: one open table in its parts; ``handle``: what these parts share;
* ``state``: the snapshots, tags and claims of a table, and every change of them, under one lock;
* ``columns``: the columns of a table, then and now; ``evolution``: changes of them;
* ``store``: the files of a table, with ages by the clock of its lake;
* ``files``: where data files lie and how they are described; ``scans``: reading them again;
* ``commits``: head and ledger, build, put; ``refs``: tags; ``upkeep``: history, expiry, audits.
"""

from paimon_sink.formats.memory.format import MemoryFormat
from paimon_sink.formats.memory.lake import MemoryLake, memory_lake, reset

__all__ = ["MemoryFormat", "MemoryLake", "memory_lake", "reset"]
