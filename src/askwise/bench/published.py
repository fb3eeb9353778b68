"""The results of Fauvel & Chalk (2021), under our names, for comparison with ours.

Borda scores are from the paper's tables 1 to 3, fractions of functions won from its supplementary figures.
Both agree with the scores recovered from the authors' published result files.  Those files also show that
the duels had 20 replicates of 50 iterations, not 40 of 80 as in the text, and that the areas under the curve
of the binary experiment were computed from ``Phi(score)``, although its scores are already probabilities.
"""

from dataclasses import dataclass

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


PUBLISHED = {
    "bbo": Published(
        table=1,
        replicates=60,
        iterations=100,
        borda={"ucb_phi": 77, "ucb_f": 45, "thompson": 41, "binary_ei": 40, "random": 12},
        wins_final=(
            (0.00, 0.24, 0.24, 0.29, 0.47),
            (0.06, 0.00, 0.00, 0.00, 0.38),
            (0.12, 0.24, 0.00, 0.21, 0.32),
            (0.03, 0.12, 0.00, 0.00, 0.29),
            (0.09, 0.15, 0.03, 0.09, 0.00),
        ),
        wins_auc=(
            (0.00, 0.00, 0.26, 0.06, 0.59),
            (0.12, 0.00, 0.18, 0.06, 0.50),
            (0.09, 0.03, 0.00, 0.00, 0.32),
            (0.09, 0.00, 0.06, 0.00, 0.47),
            (0.03, 0.06, 0.00, 0.03, 0.00),
        ),
        source="BBO_table1_60x100_score_c",
        names={
            "UCB_binary": "ucb_phi",
            "UCB_binary_latent": "ucb_f",
            "TS_binary": "thompson",
            "EI_Tesch": "binary_ei",
            "random_acquisition_binary": "random",
        },
    ),
    "pbo": Published(
        table=2,
        replicates=20,
        iterations=50,
        borda={
            "muc": 141,
            "dueling_ucb": 141,
            "bivariate_ei": 111,
            "duel_thompson": 106,
            "dueling_thompson": 101,
            "kss": 66,
            "eiig": 32,
            "ei": 23,
            "random": 21,
        },
        wins_final=(
            (0.00, 0.00, 0.06, 0.15, 0.06, 0.21, 0.50, 0.41, 0.59),
            (0.00, 0.00, 0.06, 0.09, 0.00, 0.24, 0.50, 0.41, 0.56),
            (0.03, 0.00, 0.00, 0.09, 0.03, 0.15, 0.47, 0.35, 0.41),
            (0.06, 0.00, 0.09, 0.00, 0.03, 0.06, 0.50, 0.29, 0.47),
            (0.00, 0.00, 0.00, 0.03, 0.00, 0.15, 0.47, 0.35, 0.44),
            (0.06, 0.00, 0.00, 0.00, 0.00, 0.00, 0.41, 0.21, 0.32),
            (0.00, 0.00, 0.00, 0.06, 0.00, 0.06, 0.00, 0.06, 0.09),
            (0.00, 0.00, 0.06, 0.03, 0.03, 0.06, 0.18, 0.00, 0.18),
            (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.18, 0.03, 0.00),
        ),
        wins_auc=(
            (0.00, 0.00, 0.03, 0.15, 0.00, 0.21, 0.26, 0.21, 0.32),
            (0.00, 0.00, 0.06, 0.21, 0.00, 0.24, 0.24, 0.26, 0.29),
            (0.00, 0.00, 0.00, 0.18, 0.03, 0.21, 0.24, 0.18, 0.35),
            (0.00, 0.00, 0.03, 0.00, 0.00, 0.00, 0.18, 0.06, 0.12),
            (0.00, 0.00, 0.06, 0.12, 0.00, 0.12, 0.15, 0.15, 0.26),
            (0.00, 0.00, 0.06, 0.00, 0.00, 0.00, 0.09, 0.06, 0.03),
            (0.00, 0.00, 0.03, 0.09, 0.00, 0.12, 0.00, 0.18, 0.12),
            (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.06, 0.00, 0.03),
            (0.00, 0.00, 0.03, 0.00, 0.00, 0.00, 0.06, 0.06, 0.00),
        ),
        source="PBO_table2_20x50_unscaled",
        names={
            "maxvar_challenge": "muc",
            "Dueling_UCB": "dueling_ucb",
            "bivariate_EI": "bivariate_ei",
            "DTS": "duel_thompson",
            "Thompson_challenge": "dueling_thompson",
            "kernelselfsparring": "kss",
            "EIIG": "eiig",
            "Brochu_EI": "ei",
            "random_acquisition_pref": "random",
        },
    ),
    "batch": Published(
        table=3,
        replicates=30,
        iterations=30,
        borda={"muc": 32, "kss": 22, "random": 0},
        wins_final=((0.00, 0.15, 0.68), (0.06, 0.00, 0.53), (0.00, 0.00, 0.00)),
        wins_auc=((0.00, 0.09, 0.35), (0.00, 0.00, 0.09), (0.00, 0.00, 0.00)),
        source="batchPBO_table3_m3_all_30x30",
        names={"MVT": "muc", "kernelselfsparring_tour": "kss", "random_acquisition_tour": "random"},
    ),
}

FUNCTION_NAMES = {
    "ackley": "ackley",
    "beale": "beale",
    "boha1": "bohachevsky",
    "camel3": "three_hump_camel",
    "camel6": "six_hump_camel",
    "colville": "colville",
    "crossit": "cross_in_tray",
    "dixonpr": "dixon_price",
    "drop": "drop_wave",
    "egg": "eggholder",
    "forretal08": "forrester",
    "goldpr": "goldstein_price",
    "griewank": "griewank",
    "grlee12": "gramacy_lee",
    "hart3": "hartmann3",
    "hart4": "hartmann4",
    "hart6": "hartmann6",
    "holder": "holder_table",
    "langer": "langermann",
    "levy": "levy",
    "levy13": "levy13",
    "perm0db": "perm0",
    "permdb": "perm",
    "powell": "powell",
    "rosen": "rosenbrock",
    "rothyp": "rotated_hyper_ellipsoid",
    "schaffer4": "schaffer4",
    "schwef": "schwefel",
    "shekel": "shekel",
    "shubert": "shubert",
    "spheref": "sphere",
    "sumsqu": "sum_squares",
    "trid": "trid",
    "Ursem_waves": "ursem_waves",
}
"""The authors' names for the functions -> ours."""

PAPER = tuple(FUNCTION_NAMES.values())
"""The 34 functions of the paper, in its order."""
