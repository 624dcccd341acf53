"""Which classes co-occur in images, and normalized cuts of that graph."""
