"""How near two images or classes are by their look: embeddings, nearest neighbours, duplicates."""
