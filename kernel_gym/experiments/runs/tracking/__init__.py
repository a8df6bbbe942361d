"""What a run writes for people to watch: TensorBoard events and, if a project is named, Weights & Biases."""
