"""Models as authors, behind any OpenAI-compatible endpoint."""

from kernel_gym.generators.model.author import ModelAuthor, ReplayAuthor

__all__ = ["ModelAuthor", "ReplayAuthor"]
