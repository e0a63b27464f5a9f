"""What can go wrong in a plugin, by who must act, and how it is told."""

import os

# A message for a person: what is longer is cut.
MESSAGE = 4000
FRAMES = 12
_HERE = os.path.dirname(__file__)


class RowError(Exception):
    """This row cannot be computed. Its text is the message, without a trace."""


class CallError(Exception):
    """The whole call is refused: raise one of its subclasses."""


class InvalidInput(CallError):
    """The owner of the data must act: these rows cannot be processed."""


class Unavailable(CallError):
    """The world must act: something is not there now, the same call may succeed later."""


class Internal(CallError):
    """The author of the plugin must act."""


def text_of(error: BaseException) -> str:
    """What an error says: its text, and where it came from unless it was meant."""
    if isinstance(error, (RowError, CallError)):
        return (str(error) or type(error).__name__)[:MESSAGE]
    text = str(error)
    name = type(error).__name__
    lines = [f"{name}: {text[:MESSAGE]}" if text else name]
    lines += _trace(error)
    return "\n".join(lines)


def _trace(error: BaseException) -> list:
    # By hand: the sources are not there to be quoted, and looking for them would be a system call.
    lines = []
    frame = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        if not code.co_filename.startswith(_HERE):
            lines.append(f"  at {code.co_qualname if hasattr(code, 'co_qualname') else code.co_name}"
                         f" ({os.path.basename(code.co_filename)}:{frame.tb_lineno})")
        frame = frame.tb_next
    if len(lines) > FRAMES:
        lines[FRAMES - 2 : -1] = [f"  … {len(lines) - FRAMES + 1} more"]
    return lines
