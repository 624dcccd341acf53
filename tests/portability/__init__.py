"""``make portability``: the same numbers and digests on every CPU, thread count, Python and version that is allowed."""
