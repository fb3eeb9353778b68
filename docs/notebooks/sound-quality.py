# %% [markdown]
# # What listeners like
#
# Listeners compared eight ways to reproduce music, from mono to five channels, two at a time (`SoundQuality` in R's package psychotools). Do they agree?

# %%
import csv
from pathlib import Path

import askwise as aw
from askwise import plots

with Path("../../tests/data/sound-quality.csv").open() as file:
    rows = list(csv.DictReader(file))
listeners = sorted({row["listener"] for row in rows})[:6]
rows = [row for row in rows if row["listener"] in listeners]
print(f"{len(rows)} comparisons by {len(listeners)} listeners")

# %% [markdown]
# Six listeners are enough to see how it works, and quick. Each may have a taste of their own, with something in common: a population.

# %%
ways = sorted({row[side] for row in rows for side in ("first", "second")})
study = aw.Study(aw.Space(way=aw.Choice(ways)), participants="population", name="sound quality")
study.record_many(
    [
        {
            "options": [{"way": row["first"]}, {"way": row["second"]}],
            "answer": 1 - int(row["won"]),
            "participant": row["listener"],
        }
        for row in rows
    ]
)
for one in study.top(8):
    print(
        f"{one.params['way']:15} worth {one.mean:5.2f}, 95% {one.interval[0]:5.2f} to {one.interval[1]:5.2f}"
    )

# %% [markdown]
# That is what all have in common. How much do they differ?

# %%
people = study.raters()
assert people.share is not None
assert people.share.interval is not None
low, high = people.share.interval
print(f"share of a taste that is one's own: {people.share.value:.0%}, 95% {low:.0%} to {high:.0%}")
for rater in people.each:
    best = study.best(participant=rater.name).params["way"]
    print(
        f"listener {rater.name}: likes {best}, noise {rater.noise.value:.2f}, lapses {rater.lapse.value:.0%}"
    )

# %% [markdown]
# The sixth listener is not in the list yet: people are learned when the number of answers has grown by half, the last time after 140, before the first of theirs.
# The intervals are wide: a few dozen comparisons say little about a person. They are enough to see what to offer everybody. Did they look at the
# questions?

# %%
for check in study.checks():
    print(f"{check.name}: {'look at it' if check.flagged else 'fine'}. {check.detail}")

# %%
plots.study_raters(study)

# %% [markdown]
# [People who answer](../raters.md) explains the model, [its benchmarks](../bench-raters.md) have all listeners beside R's estimates.
