"""Commands that are made of several: a misspelt one is told with the nearest."""

from __future__ import annotations

import click

from proctor.errors import nearest


class Subcommands(click.Group):
    """A group of commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            told = nearest(args[0], self.commands)
            raise click.UsageError(f"there is no command {args[0]!r}; {told}", ctx)
        return super().resolve_command(ctx, args)
