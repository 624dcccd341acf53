"""Raw datasets as columns: what the annotation files say, and nothing more."""
