"""Which limit refuses a process memory: the budget's, or one that was set before it came or by the job itself."""

import resource

from helpers.units import format_bytes

KNOWN = (("ulimit -v", "RLIMIT_AS", "VmSize:"), ("ulimit -d", "RLIMIT_DATA", "VmData:"))


class Refusals:
    """Made in a job's process before its budget is set there; `nearest` then tells who refused it memory."""

    def __init__(self, budget_is_a_limit):
        self._data_before = _limits().get("RLIMIT_DATA")
        self._budget_is_a_limit = budget_is_a_limit

    def nearest(self):
        """The limit that leaves the least room, in words; nothing if there is none, or if it is the budget's."""
        limits, sizes = _limits(), _sizes()
        rooms = [(limits[name] - sizes[key], name, words) for words, name, key in KNOWN if name in limits]
        if not rooms:
            return ""
        _, name, words = min(rooms)
        if name == "RLIMIT_DATA" and self._budget_is_a_limit and limits[name] != self._data_before:
            return ""
        return f"{words}, {format_bytes(limits[name])}"


def _limits():
    """{name: bytes} of those that are set."""
    found = {
        name: resource.getrlimit(getattr(resource, name))[0]
        for _, name, _ in KNOWN
        if hasattr(resource, name)
    }
    return {name: size for name, size in found.items() if size != resource.RLIM_INFINITY}


def _sizes():
    """What of these limits is used, in bytes; nothing where the system does not tell."""
    sizes = {key: 0 for _, _, key in KNOWN}
    try:
        with open("/proc/self/status") as status:
            lines = [line.split() for line in status]
    except OSError:
        return sizes
    return sizes | {line[0]: int(line[1]) * 1024 for line in lines if line and line[0] in sizes}
