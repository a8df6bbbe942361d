"""Research tools: credit of memories, fitted priors, validity of the simulated author."""
