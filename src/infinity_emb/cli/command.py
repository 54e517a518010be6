"""The commands `v2`, `serve` and `v1`, how a call finds its command, and exit codes."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import TYPE_CHECKING, Any

import click

from infinity_emb.cli.parameters import click_options, given_flags
from infinity_emb.cli.serve import Notice, serve
from infinity_emb.cli.tune import tune
from infinity_emb.config.environment import environ
from infinity_emb.config.log import logger
from infinity_emb.config.options import sections
from infinity_emb.errors import InfinityError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "infinity_emb"
EXIT_ERROR = 1
EXIT_INTERRUPTED = 130

_COMPLETION_VARIABLE = "_INFINITY_EMB_COMPLETE"
_GROUP_WORDS = frozenset(
    {"v1", "v2", "serve", "tune", "help", "--help", "-h", "--version", "--show-completion", "--install-completion"}
)
_SOURCES_HELP = """\
Every option is also read from its variable, shown in brackets, and from the file that --config names: flag before
variable before file. Options that are per model take one value for all models or one for each --model-id: repeat the
flag, or separate values with ';' in the variable."""
_COMPLETION_HELP = f"""\
Completion of commands and options comes from the shell. Put one line into its start-up file:

  bash (~/.bashrc):                       eval "$({_COMPLETION_VARIABLE}=bash_source {PROGRAM})"
  zsh  (~/.zshrc):                        eval "$({_COMPLETION_VARIABLE}=zsh_source {PROGRAM})"
  fish (~/.config/fish/config.fish):      {_COMPLETION_VARIABLE}=fish_source {PROGRAM} | source"""


class ServeCommand(click.Command):
    """A command that takes every option and lists them by heading."""

    def __init__(self, name: str, summary: str, notices: tuple[Notice, ...] = ()) -> None:
        super().__init__(
            name,
            callback=self._run,
            params=click_options(),
            help=f"{summary}\n\n{_SOURCES_HELP}",
            short_help=summary,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        self.notices = notices

    def _run(self, **parsed: Any) -> int:
        earlier: tuple[Notice, ...] = click.get_current_context().obj or ()
        return serve(given_flags(parsed), (*earlier, *self.notices))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options by heading."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        for heading, options in sections().items():
            rows = [record for option in options if (record := records[option.flag.replace("-", "_")]) is not None]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class TuneCommand(ServeCommand):
    """Takes the options of `v2`, so that the same words can follow it, and measures instead of serving."""

    def _run(self, **parsed: Any) -> int:
        return tune(given_flags(parsed))


@click.group(
    help="Serve embedding, reranking and classification models over HTTP.",
    epilog=f"{PROGRAM} v2 --help lists the options.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="infinity_emb", prog_name=PROGRAM)
def group() -> None:
    """The command with its sub-commands."""


def _show_completion(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:  # noqa: ARG001 - click's callback
    if wanted:
        click.echo(_COMPLETION_HELP)
        ctx.exit(0)


group.params += [
    click.Option(
        [f"--{name}-completion"], is_flag=True, is_eager=True, expose_value=False, callback=_show_completion, help=text
    )
    for name, text in (("show", "Say how to set up shell completion."), ("install", "The same."))
]
group.add_command(ServeCommand("v2", "Serve one or several models."))
group.add_command(ServeCommand("serve", "Another name for v2."))
group.add_command(TuneCommand("tune", "Measure how a model is best computed here; v2 uses the answer."))
group.add_command(
    ServeCommand(
        "v1",
        "Deprecated: use v2.",
        ((logging.WARNING, f"The command v1 is deprecated and runs as v2. Write: {PROGRAM} v2 …"),),
    )
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Words after the program's name; those of the process when None.

    Returns:
        The exit code: 0, 1 for an error, 2 for a wrong call, 130 when interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    notices: tuple[Notice, ...] = ()
    if (not words or words[0] not in _GROUP_WORDS) and _COMPLETION_VARIABLE not in environ():
        notices = ((logging.ERROR, f"No command given; running {PROGRAM} v2. Write the command: {PROGRAM} v2 …"),)
        words.insert(0, "v2")
    try:
        return int(group.main(words, prog_name=PROGRAM, standalone_mode=False, obj=notices) or 0)
    except click.ClickException as error:
        for _, text in notices:
            click.echo(text, err=True)
        error.show()
        return error.exit_code
    except InfinityError as error:
        if logger.isEnabledFor(logging.DEBUG):
            traceback.print_exception(error)
        click.echo(f"Error: {error}", err=True)
        return EXIT_ERROR
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
