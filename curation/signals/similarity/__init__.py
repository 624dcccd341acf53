"""How alike images look: encoders, stores of embeddings."""
