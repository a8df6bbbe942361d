"""Tasks: reference modules with their shapes, inputs and exported graphs."""
