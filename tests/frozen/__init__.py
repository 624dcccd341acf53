"""Numbers, lists and digests that stay as they are: outputs of commands, held against committed ones."""
