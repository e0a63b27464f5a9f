"""Lines for the operator's log. The host cuts long lines, and drops what is too much for one call.

Outside of a component, in tests, lines go to the logger `millstream` of the module `logging`.
"""

LEVELS = ("error", "warn", "info", "debug", "trace")


def _natively(level: str, message: str) -> None:
    import logging

    number = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG, "trace": 5}
    logging.getLogger("millstream").log(number[level], "%s", message)


_write = _natively


def _set_writer(writer) -> None:
    global _write
    _write = writer


def error(message: str) -> None:
    """Something failed."""
    _write("error", message)


def warn(message: str) -> None:
    """Something is odd, nothing is lost."""
    _write("warn", message)


def info(message: str) -> None:
    """For the operator."""
    _write("info", message)


def debug(message: str) -> None:
    """For the plugin's author."""
    _write("debug", message)


def trace(message: str) -> None:
    """For the plugin's author, in bulk."""
    _write("trace", message)
