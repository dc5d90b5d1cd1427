"""Whose code a line is."""

from helpers.watching.lines import is_own_code


def test_code_of_libraries_of_python_and_of_the_helpers_is_not_the_jobs_own():
    import json

    import numpy

    from helpers.watching import lines

    assert not any(map(is_own_code, (json.__file__, numpy.__file__, lines.__file__, "<frozen importlib>")))
    assert is_own_code(__file__)
    assert is_own_code("/somewhere/ipykernel_12/345.py")
