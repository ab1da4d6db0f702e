"""Values and rules that every other room shares. No I/O on tables.

Start with ``errors.py`` (the error tree), ``messages.py`` (what a task reports to the coordinator) and ``events.py``
(what a listener is given). ``options.py`` and ``option_*.py`` declare and parse options; ``schema.py``, ``columns.py``
and ``nested.py`` match a DataFrame's columns with a table's; ``conditions.py`` and ``condition_*.py`` are the option
``where``; ``identifiers.py`` remembers batch jobs; ``clock.py`` and ``steps.py`` are the seams for tests.

May import nothing of this package, and only pyarrow beside the standard library.
"""
