"""``pwc schema``: what a table's columns are and were, and changes of them."""
