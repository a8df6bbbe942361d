"""Running, comparing, reporting and analysing."""
