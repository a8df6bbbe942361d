"""The verifier for tool chains that train language models."""
