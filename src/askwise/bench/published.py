"""The results of Fauvel & Chalk (2021), under our names, for comparison with ours.

Borda scores are from the paper's tables 1 to 3, fractions of functions won from its supplementary figures.
Both agree with the scores recovered from the authors' published result files.  Those files also show that
the duels had 20 replicates of 50 iterations, not 40 of 80 as in the text, and that the areas under the curve
of the binary experiment were computed from ``Phi(score)``, although its scores are already probabilities.
EIIG has the weight k = 0.5 of the paper, not the 0.1 of its authors, and the sign of the paper.
"""

from dataclasses import dataclass

from askwise.bench.problems import rows
from askwise.rules import parse

ALPHA = 5e-4  # significance level of each test

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Published:
    """One experiment of the paper.

    ``borda`` lists our rules in the order of the table.  Rows and columns of the matrices have the same
    order; an entry is the fraction of functions on which the row beats the column, to two decimals.
    """

    table: int
    replicates: int
    iterations: int
    borda: dict[str, int]
    wins_final: Matrix
    wins_auc: Matrix
    source: str  # the authors' name for the experiment
    names: dict[str, str]  # the authors' name for a rule -> ours

    @property
    def rules(self) -> tuple[str, ...]:
        """Our names for the rules, in the order of the table."""
        return tuple(self.borda)


def _published(experiment: str, table: int, replicates: int, iterations: int, source: str) -> Published:
    lines = [row for row in rows("published") if row["experiment"] == experiment]
    rules = [str(parse(row["rule"])) for row in lines]
    borda = {rule: int(row["borda"]) for rule, row in zip(rules, lines, strict=True)}
    final, auc = (
        tuple(tuple(float(share) for share in row[column].split()) for row in lines)
        for column in ("wins_final", "wins_auc")
    )
    names = {row["authors_name"]: rule for rule, row in zip(rules, lines, strict=True)}
    return Published(table, replicates, iterations, borda, final, auc, source, names)


PUBLISHED = {
    "bbo": _published("bbo", 1, 60, 100, "BBO_table1_60x100_score_c"),
    "pbo": _published("pbo", 2, 20, 50, "PBO_table2_20x50_unscaled"),
    "batch": _published("batch", 3, 30, 30, "batchPBO_table3_m3_all_30x30"),
}

FUNCTION_NAMES = {row["authors_name"]: row["function"] for row in rows("recovered")}
"""The authors' names for the functions -> ours."""

PAPER = tuple(FUNCTION_NAMES.values())
"""The 34 functions of the paper, in its order."""
