"""One run: training loop, run folder, journal, TensorBoard events, validation."""
