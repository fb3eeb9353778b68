"""A benchmark function: its formula, to be minimised, and what is known of it."""

from askwise.bench.functions import register_function


@register_function("Booth", box=((-10.0, 10.0),) * 2, kernel="se", argmax=(1.0, 3.0), max=0.0)
def booth(x):
    """Two squared planes."""
    a, b = x.unbind(-1)
    return (a + 2 * b - 7).square() + (2 * a + b - 5).square()
