"""What a checkpoint is and means: where it comes from, what it says, how its inputs are read, how its graph looks."""
