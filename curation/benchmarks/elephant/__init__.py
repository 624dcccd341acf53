"""The Overlooked Elephant of Object Detection: Open Set (Dhamija et al., WACV 2020)."""
