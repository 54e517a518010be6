"""From what a caller sends to features: one module a modality."""
