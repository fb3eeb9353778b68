"""Numbers and tables as the report prints them."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askwise.bench.estimates import Interval
from askwise.bench.report.page import Cell, Column, Recipe, Sheet, code, measured, short, span, within
from campaigns import HOUSE, check_latex


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e6))
def test_a_measured_number_reads_back_to_the_digits_of_its_error(mean, share):
    error = share * max(1, abs(mean))
    shown, uncertain = (float(text) for text in measured(mean, error).split(" ± "))
    assert uncertain == pytest.approx(error, rel=0.06)
    assert abs(shown - mean) <= 0.06 * error + 1e-12 * abs(mean)


@given(st.floats(-1e300, 1e300))
def test_a_short_number_reads_back_to_four_digits(value):
    assert float(short(value)) == pytest.approx(value, rel=6e-4, abs=1e-300)


def test_numbers_without_an_error_stand_alone():
    assert measured(2.0, math.nan) == "2"
    assert within(Interval(-0.0001, -0.2, 0.2), 2) == "0.00 [-0.20, 0.20]"
    assert span(Interval(-0.0001, -0.2, 0.2), 2) == "[-0.20, 0.20]"
    unknown = Interval(2.0, -math.inf, math.inf)
    assert (within(unknown), span(unknown)) == ("2.000", "\u2013")


SHEET = Sheet(
    "odd-things",
    "Of `a_b` & 5 % of c_d",
    [Column("rule_name", align="l"), Column("x|y", group="a_group"), Column("z", group="a_group")],
    [
        [code("ucb_phi"), Cell("-1.5 ± 0.2", bold=True), Cell("")],
        [Cell("a-b {#}"), Cell("\u2013"), Cell("x~^\\$")],
    ],
    Recipe("askwise bench report a_b", ("askwise bench run 'c_d'",)),
)


def test_a_table_in_markdown_keeps_its_columns():
    lines = SHEET.markdown().splitlines()
    assert lines[2] == "| rule_name | a_group<br>x\\|y | a_group<br>z |"
    assert lines[4] == "| `ucb_phi` | **-1.5 ± 0.2** |  |"
    assert lines[-1] == "*Made by `askwise bench report a_b`, from the runs of `askwise bench run 'c_d'`.*"


def test_a_table_in_latex_escapes_what_has_a_meaning_there():
    tex = SHEET.latex()
    assert r"\texttt{ucb\_phi} & \textbf{$-$1.5 $\pm$ 0.2} &  \\" in tex
    assert r"a-b \{\#\} & -- & x\textasciitilde{}\textasciicircum{}\textbackslash{}\$ \\" in tex
    assert r"\caption{Of a\_b \& 5 \% of c\_d}" in tex
    assert r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{a\_group} \\" in tex
    assert tex.startswith("% askwise bench run 'c_d'\n% askwise bench report a_b\n")
    check_latex(tex)


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=HOUSE):
        replace(SHEET, rows=[[Cell("alone")]])
