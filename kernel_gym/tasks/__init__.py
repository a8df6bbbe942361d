"""Tasks: reference modules, the sizes they are judged at, their signatures and their exported graphs."""
