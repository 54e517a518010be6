"""The in-process API: one model, several, synchronous faces, and the loader that wires the layers below."""
