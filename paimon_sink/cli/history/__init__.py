"""``pwc history``: what was committed. ``as_json`` is for machines (``pwc watch`` uses it too), ``show`` for people."""
