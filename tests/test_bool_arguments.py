"""An argument that is true or false takes no word, such as "no", which is true."""

import inspect

import pytest

from tests.test_hostile_arguments import CALLS


@pytest.mark.parametrize(
    ("function", "name"),
    [
        pytest.param(function, name, id=f"{function.__name__}.{name}")
        for function in CALLS
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation in (bool, bool | None)
    ],
)
def test_a_word_is_no_bool(function, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = {
        key: value() if inspect.isfunction(value) else value
        for key, value in CALLS[function].items()
    }
    with pytest.raises((TypeError, ValueError), match=f"`{name}` must .*Received: "):
        function(**good | {name: "no"})
