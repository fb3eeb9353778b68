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
tasks = {}
for task in ("DET", "ID"):
    part = [row for row in rows if row["task"] == task]
    contrasts = [float(row["Contr"]) for row in part]
    space = aw.Space(contrast=aw.Real(min(contrasts), max(contrasts), log=True))
    study = aw.Study(space, "binary", guess=0.25, name=f"letters, {task}")
    study.record_many(
        [
            {"options": [{"contrast": contrast}], "answer": right}
            for contrast, row in zip(contrasts, part, strict=True)
            for right, count in ((True, row["Correct"]), (False, row["Incorrect"]))
            for _ in range(int(count))
        ]
    )
    tasks[task] = study
    print(f"{task}: {study.count()} answers")

# %% [markdown]
# The threshold is the contrast at which a letter is perceived half of the time.

# %%
for task, study in tasks.items():
    low, high = study.space.parameters["contrast"].low, study.space.parameters["contrast"].high
    grid = [{"contrast": low * (high / low) ** (k / 200)} for k in range(201)]
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
# work*, which here is trivial (more contrast). The curve above comes from all answers; a rule that asks near a threshold is another one.
