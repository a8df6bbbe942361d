"""How the apprentice reads its context, errs and improves."""
