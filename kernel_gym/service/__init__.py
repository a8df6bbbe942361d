"""Verification over HTTP: a service that judges kernels on its own device, and the verifier that asks it.

`app.py` is the service (extra `serve`), `jobs.py` its queue, `client.py` the verifier of the environment's option
`service`. `messages.py` is what they say to each other.
"""
