"""The main job on a built-in default: a drawn world, a real detector, a manifest, and its scores."""
