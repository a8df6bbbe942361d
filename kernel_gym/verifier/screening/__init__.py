"""Static checks of a kernel: of its source text (`screen`), its dialect (`dialect`) and its binary (`binary`)."""
