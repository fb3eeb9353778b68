"""Study files for tests of the server."""

DUEL = """
[study]
name = "hall"
question = "Which sounds better?"
seed = 3
initial = 3
[space.gain]
type = "real"
low = 0
high = 40
[space.mode]
type = "choice"
values = ["soft", "hard"]
"""
