"""Write the reference page of the command: `python -m infinity_emb.cli.reference > docs/cli.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.cli.parameters import default_text, placeholder
from infinity_emb.config.option import Arity
from infinity_emb.config.options import RETIRED_VARIABLES, sections

if TYPE_CHECKING:
    from infinity_emb.config.option import Option

_HEAD = """\
# Command and variables

<!-- Written by `python -m infinity_emb.cli.reference > docs/cli.md`; change the option declarations, not this page. -->

```
infinity_emb v2 --model-id sentence-transformers/all-MiniLM-L6-v2
```

| Call | What it does |
|---|---|
| `infinity_emb v2 …` | serves the models |
| `infinity_emb serve …` | the same |
| `infinity_emb tune …` | measures how the models are computed fastest here, for `v2` to use |
| `infinity_emb v1 …` | deprecated; says so and runs as `v2` |
| `infinity_emb …` without a command | says so at error level and runs as `v2` |
| `infinity_emb --version`, `--help` | prints and exits with 0 |
| `infinity_emb --show-completion` | says how to set up shell completion |

Exit codes: 0 stopped as asked, 1 a model, a setting or the port is at fault, 2 the call is wrong, 130 interrupted
before the start.

## Where a value comes from

A flag wins over its environment variable, the variable over the settings file (`--config`), the file over the default.

- **Per model**: the number of `--model-id` is the number of models. One value is for all of them, as many values as
  models go by position, any other number is an error. On the command line repeat the flag
  (`--batch-size 8 --batch-size 32`, `--compile --no-compile`); in a variable separate values with `;`, where one `;` at
  the end is ignored (`INFINITY_BATCH_SIZE="8;32;"`).
- **Yes or no** in a variable: `true` and `1` are yes, and where the option takes one value also `t`, `yes`, `y`.
  Anything else is no; a word that looks like neither gives a warning.
- An empty variable counts as not set, except for `--public-routes` and options that are a single text, for which
  empty is a value.
- The settings file is TOML (Python 3.10: with the package `tomli`) or JSON, with the names below:

```toml
port = 7997
dtype = "float32"            # for all models

[[models]]
model-id = "sentence-transformers/all-MiniLM-L6-v2"

[[models]]
model-id = "cross-encoder/ms-marco-MiniLM-L6-v2"
batch-size = 8
```
"""

_ARITIES = {Arity.ONE: "", Arity.SEVERAL: "repeatable", Arity.PER_MODEL: "per model"}


def markdown() -> str:
    """The page."""
    parts = [_HEAD]
    for heading, options in sections().items():
        parts.append(f"## {heading}\n\n| Option | Default | Variable | Meaning |\n|---|---|---|---|")
        parts[-1] += "".join(f"\n{_row(option)}" for option in options) + "\n"
    parts.append("## Variables of the original without effect\n\n| Variable | Why |\n|---|---|")
    parts[-1] += "".join(f"\n| `{name}` | {reason} |" for name, reason in RETIRED_VARIABLES.items()) + "\n"
    return "\n".join(parts)


def _row(option: Option) -> str:
    values = "" if option.kind is bool else " " + placeholder(option).replace("|", r"\|")
    flag = f"`--{option.flag}`<br>`--no-{option.flag}`" if option.kind is bool else f"`--{option.flag}{values}`"
    default = default_text(option)
    arity = _ARITIES[option.arity]
    shown = f"`{default}`" if default else ""
    return f"| {flag} | {shown} | `{option.variable}` | {option.help}{f' *{arity}*' if arity else ''} |"


if __name__ == "__main__":
    print(markdown(), end="")
