"""What a process reads of its own memory, in full or at a glance. Needs only Python."""

from .page_faults import PAGE


def memory(pid):
    """Bytes that a process holds: of its own, shared, of files, the highest total so far; and the pages that it has
    touched for the first time. Zeros where the system does not tell."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as status:
            text = status.read(8192)
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stat:
            faults = int(stat.read(1024).rpartition(b")")[2].split()[7])
        return (
            *(_kilobytes(text, key) for key in (b"RssAnon:", b"RssShmem:", b"RssFile:", b"VmHWM:")),
            faults,
        )
    except (OSError, IndexError, ValueError):
        return 0, 0, 0, 0, 0


def quick_look():
    """Bytes in memory, and those among them that others may have too, as of files. Roughly, and with little effort."""
    with open("/proc/self/statm", "rb", buffering=0) as statm:
        _, resident, shared, *_ = statm.read(256).split()
    return int(resident) * PAGE, int(shared) * PAGE


def _kilobytes(text, key):
    start = text.index(key) + len(key)
    return int(text[start : text.index(b"kB", start)]) * 1024
