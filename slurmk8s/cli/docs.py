"""The page of all commands, docs/commands.md, made from their own `--help`: `python -m slurmk8s.cli.docs`."""

from collections.abc import Iterator

import click

from slurmk8s.cli import group

# The reader's terminal must not decide how the page is wrapped.
WIDTH = 100


def page() -> str:
    """The whole page in Markdown."""
    parts = [
        "# Commands\n",
        "What `--help` prints, for every command. This page is made by `make docs`.\n",
    ]
    for path, context in commands(group, ["slurmk8s"], None):
        parts.append(f"{'#' * min(len(path) + 1, 3)} `{' '.join(path)}`\n")
        parts.append(f"```text\n{context.get_help()}\n```\n")
    return "\n".join(parts)


def commands(
    command: click.Command, path: list[str], parent: click.Context | None
) -> Iterator[tuple[list[str], click.Context]]:
    """A command and all below it, in the order of the help page; hidden ones left out."""
    context = click.Context(
        command, info_name=path[-1], parent=parent, terminal_width=WIDTH, **command.context_settings
    )
    yield path, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from commands(below, [*path, name], context)


if __name__ == "__main__":
    click.echo(page(), nl=False)
