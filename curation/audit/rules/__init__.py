"""The rules of an audit, by what they look at."""
