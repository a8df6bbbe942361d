"""Access to language models: `endpoint` is the client, `transcript` records its exchanges, `credentials` guards keys.

The model author (`kernel_gym.authors.model`), the endpoint embedder and the verifier's inspection use it.
"""
