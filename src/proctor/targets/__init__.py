"""Targets, the systems under evaluation: functions, agents, commands, HTTP endpoints, models, recordings."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "records.trial": ("Reply",),
    "targets.command": ("CommandTarget",),
    "targets.conversation": ("ConversationTarget",),
    "targets.http": ("HttpTarget",),
    "targets.main_loop.bus": ("EventBus",),
    "targets.main_loop.loop": ("MainLoop", "Response"),
    "targets.main_loop.tools": ("Tool", "tool"),
    "targets.model": ("ModelTarget",),
    "targets.recorded": ("RecordedTarget",),
}

__getattr__, __dir__ = lazy_names("proctor.targets", EXPORTS)
__all__ = __dir__()
