"""The formats that parts are written in: what is written, decided before a byte is."""
