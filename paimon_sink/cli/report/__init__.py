"""``pwc report``: the history of a table as one web page.

``series`` and ``ticks`` compute, ``plot`` and ``plots`` draw SVG, ``page`` puts it together with ``report.css``.
"""
