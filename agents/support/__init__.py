"""Parts that agents use: features of a context, open attempts, item numbers, saved files."""
