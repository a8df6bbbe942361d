"""Models as authors, behind any OpenAI-compatible endpoint."""

from kernel_gym.authors.model.author import ModelAuthor, ReplayAuthor

__all__ = ["ModelAuthor", "ReplayAuthor"]
