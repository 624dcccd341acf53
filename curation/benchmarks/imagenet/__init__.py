"""Large-Scale Open-Set Classification Protocols for ImageNet (WACV 2023): P1, P2, P3."""
