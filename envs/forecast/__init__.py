"""The forecast environment: real decisions of the author, forecast verdicts, no compiler.

Read in this order. `environment.py` has the environment and its vector form, `batched_episodes.py` the attempts of many
tasks at once, `bank.py` the memory, `items.py` its items as arrays, and `descriptions.py` what each of them shows.
"""
