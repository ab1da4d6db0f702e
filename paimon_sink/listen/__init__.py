"""The built-in listeners, and how listeners are loaded.

Start with ``loading.py``: it makes listeners from the options ``listeners`` and ``listener.*``. ``mark_done.py`` marks
complete partitions (``done_trigger.py`` decides which, ``done_actions.py`` and ``http_report.py`` act), ``tags.py``
tags the first snapshot of each day or hour (``tag_periods.py`` decides), ``metrics.py`` writes figures of each batch
(``prometheus.py`` formats them). ``settings.py`` says how settings are declared, and ``redaction.py`` keeps secrets out
of errors.

May import ``formats/``, ``storage/`` and ``core/``. When listeners are notified is decided in ``commit/dispatch.py``.
"""
