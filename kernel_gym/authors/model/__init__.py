"""Authors that ask a language model behind an OpenAI-compatible endpoint.

`author.py` has the two authors: one asks, the other replays a transcript. `prompt.py` composes the request from the
templates in `prompts/`, and `answer.py` finds the kernel in the reply.
"""

from kernel_gym.authors.model.author import ModelAuthor, ReplayAuthor

__all__ = ["ModelAuthor", "ReplayAuthor"]
