"""Optional imports: what is missing is said, and nobody is told about what is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from infinity_emb import extras
from infinity_emb.errors import MissingExtraError


def test_a_missing_package_is_an_error_with_the_line_that_installs_it():
    with pytest.raises(MissingExtraError, match=r'pip install "infinity_emb\[vision\]"') as caught:
        extras.require("no_such_package.part", "vision", "reading pictures")
    assert "'no_such_package'" in caught.value.message
    assert caught.value.param == "no_such_package"


@pytest.mark.parametrize("before", ["", "import openvino_telemetry; "], ids=["fresh", "reporter already imported"])
def test_openvino_is_imported_without_the_package_that_reports_to_its_maker(before):
    script = before + (
        "import sys; from infinity_emb import extras; was = 'openvino_telemetry' in sys.modules; "
        "extras.require('openvino', 'openvino', 'x').Core; "
        "used = [name for name, module in sys.modules.items() if name.startswith('openvino.')"
        " and getattr(getattr(module, 'tm', None), '__name__', '') == 'openvino_telemetry']; "
        "assert not used, used; assert ('openvino_telemetry' in sys.modules) == was; "
        "assert sys.modules.get('openvino_telemetry', sys) is not None"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
