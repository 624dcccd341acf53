"""How near classes or images are: WordNet, CLIP, co-occurrence."""
