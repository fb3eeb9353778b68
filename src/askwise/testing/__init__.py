"""Contracts for plug-ins, as tests to inherit: what askwise expects of a storage and of a rule."""

from askwise.errors import extra

with extra("testing", "askwise.testing"):
    from askwise.testing.rules import RuleContract as RuleContract
    from askwise.testing.storage import RecordContract as RecordContract
    from askwise.testing.storage import StorageContract as StorageContract
