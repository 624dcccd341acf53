"""A demo of the main job: a drawn world, a real detector, a manifest, and its scores."""
