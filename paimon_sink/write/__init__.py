"""What a task does: Arrow batches in, Parquet files of about the target size and one message out.

Start with ``task.py``: ``write_task`` runs one task attempt and removes its own files when it fails. ``fanout.py``
splits rows by partition in bounded memory, ``files.py`` writes one partition's files, ``encoding.py`` chooses
dictionaries, ``event_time.py`` computes the task's watermark, ``offsets.py`` works around empty lists of Spark 4.1.

May import ``formats/``, ``storage/`` and ``core/``. A task never talks to the coordinator: its message does.
"""
