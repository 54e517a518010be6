"""Values as people write them."""

from __future__ import annotations

import pytest

from infinity_emb.config.convert import convert
from infinity_emb.config.option import Option
from infinity_emb.errors import ConfigurationError
from infinity_emb.types import Device


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        (int, " 8 ", 8),
        (int, "-1", -1),
        (float, "1e3", 1000.0),
        (float, 2, 2.0),
        (bool, "Yes", True),
        (bool, "off", False),
    ],
)
def test_numbers_and_truth(kind, written, meant):
    value = convert(Option(help="", kind=kind), written)
    assert value == meant
    assert type(value) is kind


@pytest.mark.parametrize(
    ("kind", "written"),
    [(int, "1.0"), (int, "1_0"), (int, True), (int, None), (float, "nan"), (float, "inf"), (float, "x"), (bool, "2")],
)
def test_what_is_no_number_or_truth_is_refused(kind, written):
    with pytest.raises(ConfigurationError, match="is n"):
        convert(Option(help="", kind=kind), written)


def test_words_are_read_in_any_case_and_offered_when_wrong():
    option = Option(help="", kind=Device, hidden_choices=("xla",))
    assert convert(option, "CPU") is Device.CPU
    assert convert(option, "xla") is Device.XLA
    with pytest.raises(ConfigurationError, match=r"auto, cpu, cuda, mps, tensorrt, npu$"):
        convert(option, "gpu")
