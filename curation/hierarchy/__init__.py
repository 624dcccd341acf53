"""Class hierarchies: kinship between classes."""
