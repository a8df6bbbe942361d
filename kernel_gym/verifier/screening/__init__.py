"""Static checks of a kernel: its source text, its dialect and its binary."""
