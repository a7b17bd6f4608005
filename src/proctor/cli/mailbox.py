"""`proctor mailbox`: show or empty a mailbox."""

from __future__ import annotations

from typing import Any

import click

from proctor.cli.evaluation import open_mailbox
from proctor.cli.options import POSITIVE_INTEGER, display_name, json_option, option

# A reason may quote the output of a worker's program.
REASON_WIDTH = 2_000


@click.command("mailbox")
@click.argument("address")
@option("--limit N", "Show at most N dead letters.", type=POSITIVE_INTEGER, default=20)
@option("--purge", "Delete all messages, but not the dead letters.")
@option("--purge-all --remove", "Delete all messages and all dead letters.", into="remove")
@json_option
def command(address: str, limit: int, purge: bool, remove: bool, as_json: bool) -> int:
    """Show the number of messages in a mailbox and its dead letters, or empty it.

    \b
    proctor mailbox redis://localhost:6379/0/evals
    proctor mailbox redis://localhost:6379/0/evals --purge   delete messages of abandoned runs

    The number includes messages that workers are processing; --purge deletes them too.
    """
    from proctor.records import codec
    from proctor.records.formatting import format_count
    from proctor.reports.format import single_line

    box = open_mailbox(address, dict)
    # Fails if the server does not answer.
    messages = box.approximate_count()
    letters = box.dead_letters(limit)
    deleted: dict[str, Any] = {}
    if remove:
        box.remove()
        deleted = {"removed": messages}
    elif purge:
        deleted = {"purged": box.purge()}
    if as_json:
        click.echo(codec.encode({"messages": messages, "dead_letters": letters, **deleted}))
        return 0
    click.echo(f"{display_name(box.name)}: {format_count(messages, 'message')}" + (", deleted" if deleted else ""))
    for letter in letters:
        click.echo(
            f"dead letter {display_name(letter.id)} of {letter.died_at:%Y-%m-%d %H:%M:%S}: "
            f"{single_line(letter.reason, REASON_WIDTH)}"
        )
        for event in letter.history:
            click.echo(f"  {single_line(event, REASON_WIDTH)}")
    return 0
