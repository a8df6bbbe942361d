"""Authors that ask a language model, behind an OpenAI-compatible endpoint or on this machine.

`author.py` has the author that asks an endpoint and the one that replays a transcript, and `local.py` those with a
model file of this machine. `prompt.py` composes the request from the templates in `prompts/`, and `answer.py` finds the
kernel in the reply.
"""

from kernel_gym.authors.model.author import ModelAuthor, ReplayAuthor
from kernel_gym.authors.model.local import BatchedAuthor, LocalAuthor

__all__ = ["BatchedAuthor", "LocalAuthor", "ModelAuthor", "ReplayAuthor"]
