# Written by tools/generate.py from EXPORTS in proctor.targets.
from proctor.records.trial import Reply as Reply
from proctor.targets.command import CommandTarget as CommandTarget
from proctor.targets.conversation import ConversationTarget as ConversationTarget
from proctor.targets.http import HttpTarget as HttpTarget
from proctor.targets.main_loop.bus import EventBus as EventBus
from proctor.targets.main_loop.loop import MainLoop as MainLoop
from proctor.targets.main_loop.loop import Response as Response
from proctor.targets.main_loop.tools import Tool as Tool
from proctor.targets.main_loop.tools import tool as tool
from proctor.targets.model import ModelTarget as ModelTarget
from proctor.targets.recorded import RecordedTarget as RecordedTarget

__all__ = [
    "CommandTarget",
    "ConversationTarget",
    "EventBus",
    "HttpTarget",
    "MainLoop",
    "ModelTarget",
    "RecordedTarget",
    "Reply",
    "Response",
    "Tool",
    "tool",
]
EXPORTS: dict[str, tuple[str, ...]]
