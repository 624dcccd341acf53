"""Manifests: frozen, checksummed image-id lists with class roles, label views and provenance."""
