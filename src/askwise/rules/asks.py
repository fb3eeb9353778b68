"""The kinds of query, in a module that does not load torch."""

from enum import StrEnum


class Asks(StrEnum):
    """The kind of a query: about one setting, two, or several."""

    BINARY = "binary"
    DUEL = "duel"
    BATCH = "batch"

    @classmethod
    def of_size(cls, m: int) -> "Asks":
        """The kind of a query of m settings."""
        return cls.BINARY if m == 1 else cls.DUEL if m == 2 else cls.BATCH
