"""Askwise inside other libraries; each module here needs the extra that has its name."""
