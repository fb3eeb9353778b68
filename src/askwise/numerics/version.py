"""The version of the numbers: only with that of its beginning is a study replayed to the last bit."""

VERSION = 6
"""Raise it with every change after which equal answers may give other questions or recommendations, if only
in their last digits; say in the changelog which studies it concerns.

1: askwise 0.1.0.  2: settings satisfy their constraints exactly; equalities of whole numbers are searched.
3: wider priors of the lengthscales that ``kernel="averaged"`` averages over.
4: kernels are learned with gradients by hand, averages draw theirs otherwise, searches and inference round
otherwise, and more than a thousand answers are inferred through landmarks.
5: distances of searches, gradients of the evidence and draws of f round otherwise; of equal scores each
question takes another.
6: searches rank their starts in single precision, and kernels that are averaged over are drawn around a
rougher fit.
"""
