"""Every option of the command, collected from where it is declared."""

from __future__ import annotations

from typing import Final

from infinity_emb.config.checks import readable_file
from infinity_emb.config.engine_args import ENGINE_OPTIONS
from infinity_emb.config.option import Option
from infinity_emb.config.server_args import SERVER_OPTIONS

SETTINGS: Final = ENGINE_OPTIONS + SERVER_OPTIONS

CONFIG_FILE: Final = Option(
    flag="config",
    field="config",
    optional=True,
    section="Log and start",
    help="Settings file, TOML or JSON, with the names of these options; one [[models]] table for each model.",
    check=readable_file,
)

OPTIONS: Final = (*SETTINGS, CONFIG_FILE)

SETTING_BY_FLAG: Final = {flag: option for option in SETTINGS for flag in (option.flag, *option.synonyms)}

RETIRED_VARIABLES: Final = {
    "INFINITY_ANONYMOUS_USAGE_STATS": "there is no telemetry to switch on or off",
    "INFINITY_CALIBRATION_DATASET_URL": "nothing is downloaded to find the ranges of int8 and uint8 vectors",
    "INFINITY_DISABLE_OPTIMUM": "the package optimum is not used",
}
"""Variables of the original that have no effect, and why."""


def sections() -> dict[str, list[Option]]:
    """Options by heading, in the order of declaration; those without effect come last."""
    found: dict[str, list[Option]] = {}
    for option in sorted(OPTIONS, key=lambda option: option.retired is not None):
        found.setdefault("Without effect" if option.retired else option.section, []).append(option)
    return found
