"""How the apprentice reads its context, makes mistakes and improves; the same for every language.

Read in this order. `idioms.py` defines the pieces of dialect that can go wrong, `profile.py` an author's constants.
`reading.py` finds what a note shows of each idiom, `spelling_odds.py` turns that into a probability, and
`spelling_choice.py` holds the spellings of one kernel. `moves.py` chooses the schedule, in drafting and in refining.
"""
