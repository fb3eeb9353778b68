# %% [markdown]
# # How much contrast
#
# How strong must the contrast of a letter be to be seen, or to be read? In `ecc2` (R's package psyphy) an observer found out in which of four places a
# letter was (DET), and which of four letters it was (ID). So an answer is right once in four times by luck.

# %%
import csv
from pathlib import Path

import askwise as aw
from askwise import plots

with Path("../../tests/data/ecc2.csv").open() as file:
    rows = [row for row in csv.DictReader(file) if row["Size"] == "12.4"]
for row in rows[:3]:
    print(row)

# %% [markdown]
# A yes/no study for each task. `guess=0.25` tells the model about luck: then "works 50% of the time" means *perceived* half of the time.

# %%
low, high = (end(float(row["Contr"]) for row in rows) for end in (min, max))
space = aw.Space(contrast=aw.Real(low, high, log=True))
tasks = {}
for task in ("DET", "ID"):
    part = [row for row in rows if row["task"] == task]
    study = aw.Study(space, "binary", guess=0.25, name=f"letters, {task}")
    study.record_many(
        [
            {"options": [{"contrast": float(row["Contr"])}], "answer": right}
            for row in part
            for right, count in ((True, row["Correct"]), (False, row["Incorrect"]))
            for _ in range(int(count))
        ]
    )
    tasks[task] = study
    print(f"{task}: {study.count()} answers")

# %% [markdown]
# The threshold is the contrast at which a letter is perceived half of the time.

# %%
grid = [{"contrast": low * (high / low) ** (k / 200)} for k in range(201)]
for task, study in tasks.items():
    shown = study.predict(grid)
    nearest = min(zip(shown, grid, strict=True), key=lambda one: abs(one[0].probability - 0.5))
    print(f"{task}: threshold at a contrast of {nearest[1]['contrast']:.3f}")

# %% [markdown]
# R's fits of a straight line in log contrast have their thresholds at 0.132 (DET) and 0.287 (ID); ours is a smooth curve of any shape. Reading takes about twice
# the contrast of detecting.

# %%
plots.study_slices(tasks["ID"])

# %% [markdown]
# These answers were collected by a fixed plan. A study chooses contrasts by itself: `study.ask()`. Note what it looks for, though: the setting *most likely to
# work*, which here is trivial (more contrast). To ask near a threshold, give the study a level: [level sets](../level-sets.md).
