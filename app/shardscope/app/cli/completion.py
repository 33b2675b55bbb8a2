"""`shardscope completion`: the script that teaches a shell the commands."""

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.session import Session

SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    short_help="Print the completion script of a shell.",
    examples=(
        ('eval "$(shardscope completion bash)"', "In ~/.bashrc."),
        ('eval "$(shardscope completion zsh)"', "In ~/.zshrc, after compinit."),
        (
            "shardscope completion fish > ~/.config/fish/completions/shardscope.fish",
            "Once.",
        ),
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_obj
def completion(session: Session, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, codes, limits and schema names."""
    from click.shell_completion import ShellComplete, get_completion_class

    from shardscope.app.cli.root import shardscope
    from shardscope.app.cli.run import COMPLETE, NAME

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choice is closed
    # click's own `source()` of bash starts a bash to ask for its version; the script needs 4.4 and says so itself.
    script = ShellComplete.source(kind(shardscope, {}, NAME, COMPLETE))
    session.out.write_text(script)
