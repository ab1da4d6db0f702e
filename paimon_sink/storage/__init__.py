"""Files on local disks, S3 and every other fsspec store that has an exclusive create.

Start with ``store.py``: the class ``Store`` (read, write, list, delete, put-if-absent) and ``open_store``. ``local.py``
and ``remote.py`` implement it. ``exclusive.py`` holds the put-if-absent of each kind of store, on which every commit
depends. ``durable.py`` decides what is synced to a local disk and when; ``output.py`` writes data files as streams;
``location.py`` parses locations and refuses unsafe stores; ``settings.py`` and ``logs.py`` keep credentials out of
messages and logs.

May import ``core/`` only. The one room that imports fsspec and s3fs.
"""
