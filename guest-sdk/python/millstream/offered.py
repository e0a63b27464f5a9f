"""What the plugin offers: filled while its modules are imported, read by the component's exports."""

import re

functions = []
aggregates = []
processors = []
migrations = []
sources = []

_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")


def sql_name(name: str) -> str:
    """A name that SQL takes as it is."""
    if not _NAME.match(name):
        raise ValueError(f"`{name}` cannot be a name in SQL: lower-case letters, digits and _")
    return name


def snake(name: str) -> str:
    """`WordCount` as `word_count`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def offer(offers: list, item) -> None:
    """Adds an item under a name of its own."""
    if any(other.name == item.name for other in offers):
        raise ValueError(f"there are two functions `{item.name}`")
    offers.append(item)
