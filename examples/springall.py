"""Nine puddings, 885 duels by real tasters, 198 of them ties: what each is worth, and which is best.

Data: Springall (1973), Response surface fitting using a generalization of the Bradley-Terry paired comparison
model, Applied Statistics 22; from R's package BradleyTerry2.  Each row of springall.csv is a pair of puddings
with their concentrations of flavour and gel, and how often the first won, lost and tied.
"""

import csv
from pathlib import Path

import askwise as aw

with (Path(__file__).parent / "springall.csv").open() as file:
    pairs = list(csv.DictReader(file))

sides = ("first", "second")
puddings = {int(row[side]): (row[f"{side}_flavour"], row[f"{side}_gel"]) for row in pairs for side in sides}
table = [{"pudding": name, "flavour": of[0], "gel": of[1]} for name, of in sorted(puddings.items())]
outcomes = {"win": 0, "loss": 1, "tie": None}
duels = [
    {"options": [{"pudding": int(row[side])} for side in sides], "answer": answer}
    for row in pairs
    for outcome, answer in outcomes.items()
    for _ in range(int(row[outcome]))
]

for features in ([], ["flavour", "gel"]):
    study = aw.Study(aw.Items(table, features=features, id="pudding"), lapses=0)
    study.record_many(duels)
    print(f"\n{len(duels)} duels, {' and '.join(features) or 'no'} features")
    for one in study.top(9):
        print(f"pudding {one.params['pudding']}: worth {one.mean:5.2f}, beats the best {one.probability:.0%}")
