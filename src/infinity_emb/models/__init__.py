"""What a checkpoint is and means: its files, its spec, how its inputs are read, its graph."""
