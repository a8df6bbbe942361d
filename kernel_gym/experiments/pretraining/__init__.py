"""Train the network of `agents/scoring.py` on forecast attempts, over many authors and half of the tasks.

`rollouts.py` makes attempts on the training split (`kernel_gym.experiments.splits`), `learners.py` holds the losses,
and `pretraining.py` is the loop. An attempt is an episode of its own here: its reward is the return of each of its
picks, and nothing of what happens later counts.
"""
