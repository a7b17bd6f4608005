"""`proctor mailbox`: what lies in a mailbox, and how to empty it."""

from __future__ import annotations

from typing import Any

import click

from proctor.cli.evaluation import open_mailbox
from proctor.cli.options import json_option, shown

# A reason may quote what a worker's program said: long texts are cut.
REASON_WIDTH = 2_000


@click.command("mailbox")
@click.argument("address")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True,
              help="How many dead letters are shown.")  # fmt: skip
@click.option("--purge", is_flag=True, help="Drop every message; dead letters stay.")
@click.option("--remove", is_flag=True, help="Drop every message and every dead letter.")
@json_option()
def command(address: str, limit: int, purge: bool, remove: bool, as_json: bool) -> int:
    """Show how many messages a mailbox holds, and its dead letters; or empty it.

    \b
    proctor mailbox redis://localhost:6379/0/evals
    proctor mailbox redis://localhost:6379/0/evals --purge   drops what abandoned runs left there

    Messages that workers hold are counted, and purged too.
    """
    from proctor.records import codec
    from proctor.reports.format import line

    box = open_mailbox(address, dict)
    letters = box.dead_letters(limit)
    held = box.approximate_count()
    dropped: dict[str, Any] = {}
    if remove:
        box.remove()
        dropped = {"removed": held}
    elif purge:
        dropped = {"purged": box.purge()}
    if as_json:
        click.echo(codec.encode({"messages": held, "dead_letters": letters, **dropped}))
        return 0
    click.echo(f"{shown(box.name)}: {held:,} messages" + (", dropped" if dropped else ""))
    for letter in letters:
        click.echo(
            f"dead letter {shown(letter.id)} of {letter.died_at:%Y-%m-%d %H:%M:%S}: "
            f"{line(letter.reason, REASON_WIDTH)}"
        )
        for event in letter.history:
            click.echo(f"  {line(event, REASON_WIDTH)}")
    return 0
