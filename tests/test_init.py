"""The names of the package."""

import itertools

import pytest

import askwise as aw


def test_each_public_name_is_listed_once_and_can_be_imported():
    assert len(set(aw.__all__)) == len(aw.__all__)
    assert set(itertools.chain(*aw._HOMES.values())) == set(aw.__all__) - {"bench", "numerics", "rules"}
    for name in aw.__all__:
        assert getattr(aw, name) is not None
        assert name in dir(aw)


@pytest.mark.parametrize("name", ["nothing", "Nothing"])
def test_another_name_is_an_attribute_error(name):
    with pytest.raises(AttributeError, match=f"module 'askwise' has no attribute '{name}'"):
        getattr(aw, name)
