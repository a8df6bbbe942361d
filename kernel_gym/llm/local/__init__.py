"""A language model on this machine: its installation, a llama.cpp server, and batches on a GPU.

`installation` fetches a model file, `server` runs llama.cpp behind an OpenAI-compatible address, and `batched_model`
writes many answers at once on a GPU. `endpoints` has the two clients, which are used like the client of any endpoint.
"""
