"""``pwc watch``: one table, live. ``state`` reads, ``frame`` lays a frame out, ``live`` draws it again and again."""
