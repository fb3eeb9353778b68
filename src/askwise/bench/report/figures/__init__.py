"""The figures of the report; needs matplotlib (``askwise[plots]``)."""
