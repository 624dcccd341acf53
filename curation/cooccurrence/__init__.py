"""Which classes keep company: co-occurrence of classes in images, and normalized cuts of it."""
