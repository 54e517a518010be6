"""Dynamic batching: policy (batcher), the waiting line (dispatcher), a thread a replica (worker)."""
