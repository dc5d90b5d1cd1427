"""Reading a log of any size and any bytes in bounded memory: the lines that can be evidence, cleaned."""

import io
import re
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 1 << 20
SEARCHED_FIRST = 32  # chunks of a huge log that are searched, at its beginning
SEARCHED_LAST = 32  # and at its end; what lies between is read and let go
LONGEST_LINE = 2_000  # characters that are looked at; patterns therefore cost no more per line than this
FIRST_LINES = 500  # of the log, whatever they say
LAST_LINES = 1_000
NOTABLE_LINES = 250  # from the middle: so many of the first and of the last that hold one of the words below
SAME_FORM = 3  # lines that differ in their numbers only, and
WHOLE_END = 50  # the last lines, which are all kept

# From each chunk of the middle the first and the last line with one of these (in lower case) is kept.
NOTABLE_WORDS = (
    b"out of memory",
    b"oom",
    b"memoryerror",
    b"allocate",
    b"exhausted",
    b"killed",
    b"bad_alloc",
    b"cuda_error",
    b"cublas_status",
    b"space left",
    b"open files",
    b"shuffle buffer",
    b"retracing",
    b"traceback",
)

_COLOURS = re.compile(r"(?:\x1b|\\x1b|\\u001b|\\033)\[[0-9;?]{0,20}[A-Za-z]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PROGRESS = re.compile(r"[0-9.:,=>#%|\-\u2588\u2501\s]+")
_SIXTEEN_BIT = (b"\xff\xfe", b"\xfe\xff")  # how a log starts that a Windows PowerShell wrote
_ALLOCATOR_DUMP = re.compile(r"\] (?:Chunk at|Free +at|InUse at|Bin \(|Next region|\d+ Chunks of size)")


@dataclass(frozen=True)
class Log:
    """The lines of a log worth reading, in order, and what was left out."""

    lines: tuple = ()
    bytes_read: int = 0
    binary: bool = False
    shortened: bool = False


def read_text(text):
    """Take a log from text or bytes (None is an empty log)."""
    if text is None:
        text = b""
    if isinstance(text, str):
        text = text.encode("utf-8", errors="replace")
    if not isinstance(text, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"the log must be text or bytes, not {type(text).__name__}; read a file with diagnose_file"
        )
    return read_stream(io.BytesIO(text))


def read_file(path):
    """Take a log from a file; OSError says in a sentence why it cannot be read."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a log; name the file")
    try:
        with open(path, "rb") as stream:
            return read_stream(stream)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no log at {path}; check the name and the folder") from None
    except PermissionError:
        raise PermissionError(f"{path} may not be read by you; copy it or change its permissions") from None


def read_stream(stream):
    """Take a log from a binary stream, in chunks: the first lines, the last lines, and the notable ones between."""
    sieve = _Sieve()
    sixteen_bit = False
    for chunk in _chunks(stream):
        sixteen_bit = sixteen_bit or (sieve.bytes_read == 0 and chunk.startswith(_SIXTEEN_BIT))
        sieve.bytes_read += len(chunk)
        sieve.take(_eight_bit(chunk) if sixteen_bit else chunk)
    return sieve.log()


def _chunks(stream):
    """The stream in chunks that end with a line where they can, however small the pieces are that it hands out."""
    unread = bytearray()
    while piece := stream.read(CHUNK_BYTES):
        unread += piece
        while len(unread) >= CHUNK_BYTES:
            line_end = max(unread.rfind(end, 0, CHUNK_BYTES) for end in (b"\n", b"\r"))
            chunk_end = line_end + 1 or CHUNK_BYTES
            yield bytes(unread[:chunk_end])
            del unread[:chunk_end]
    if unread:
        yield bytes(unread)


def _eight_bit(chunk):
    """The plain letters of 16-bit text, without its mark at the beginning."""
    return (chunk[2:] if chunk.startswith(_SIXTEEN_BIT) else chunk).replace(b"\x00", b"")


class _Sieve:
    """Keeps a bounded choice of the lines that go through it."""

    def __init__(self):
        self.bytes_read = 0
        self.zeros = 0
        self.first = []
        self.notable_first = []
        self.notable_last = deque(maxlen=NOTABLE_LINES)
        self.waiting = deque()  # chunks that may turn out to be the end
        self.searched = 0
        self.shortened = False

    def take(self, chunk):
        """Take the next chunk; the oldest that waits is pushed out and searched, until enough have been."""
        self.zeros += chunk.count(b"\x00")
        self.waiting.append(chunk)
        if len(self.waiting) > SEARCHED_LAST:
            oldest = self.waiting.popleft()
            if self.searched < SEARCHED_FIRST:
                self.search(oldest)

    def search(self, chunk):
        """Keep what is notable in a chunk, and all lines of the first."""
        self.searched += 1
        if len(self.first) < FIRST_LINES:
            lines = _split(chunk)
            room = FIRST_LINES - len(self.first)
            self.first += lines[:room]
            if len(lines) <= room:
                return
        self.shortened = True
        for place in _notable_places(chunk):
            line = _line_around(chunk, place)
            if len(self.notable_first) < NOTABLE_LINES:
                self.notable_first.append(line)
            else:
                self.notable_last.append(line)

    def log(self):
        """The chosen lines, cleaned."""
        while len(self.waiting) > 2:
            self.search(self.waiting.popleft())
        end = _split(b"".join(self.waiting))
        room = FIRST_LINES - len(self.first)
        first, last = self.first + end[:room], end[room:]
        shortened = self.shortened or len(last) > LAST_LINES
        raw = [*first, *self.notable_first, *self.notable_last, *last[-LAST_LINES:]]
        cleaned = (clean(line) for line in raw)
        lines = tuple(line for line in cleaned if line and not _ALLOCATOR_DUMP.search(line))
        return Log(lines, self.bytes_read, self.zeros > self.bytes_read // 20, shortened)


def thin(lines):
    """Leave out what a log says again and again, such as progress: each form of a line three times, and the end."""
    seen = Counter()
    kept = []
    for place, line in enumerate(lines):
        form = _PROGRESS.sub(" ", line)
        seen[form] += 1
        if seen[form] <= SAME_FORM or place >= len(lines) - WHOLE_END:
            kept.append(line)
    return kept


def _split(text):
    """Lines that are not empty. Carriage returns and backspaces redraw a progress bar: each drawing is a line."""
    return [line for line in text.replace(b"\r", b"\n").replace(b"\x08", b"\n").split(b"\n") if line]


def _notable_places(chunk):
    """Where the first and the last of each notable word stands, in order."""
    lowered = chunk.lower()
    return sorted(
        {place for word in NOTABLE_WORDS for place in (lowered.find(word), lowered.rfind(word))} - {-1}
    )


def _line_around(chunk, place):
    """The line at a place of a chunk, no longer than is looked at."""
    around = chunk[max(0, place - LONGEST_LINE) : place + LONGEST_LINE].replace(b"\r", b"\n")
    middle = min(place, LONGEST_LINE)
    start = around.rfind(b"\n", 0, middle) + 1
    end = around.find(b"\n", middle)
    return around[start : end if end >= 0 else None]


def _shorten(line):
    """Of an endless line only the beginning and the end are kept."""
    if len(line) <= 4 * LONGEST_LINE:
        return line
    return line[: 2 * LONGEST_LINE] + b" ... " + line[-2 * LONGEST_LINE :]


def clean(line):
    """One line as text: valid, without colours and control characters, of bounded length.

    >>> clean(b"\\x1b[31mKilled\\x1b[0m")
    'Killed'
    """
    text = _CONTROLS.sub("", _COLOURS.sub("", _shorten(line).decode("utf-8", errors="replace"))).rstrip()
    if len(text) > LONGEST_LINE:
        half = LONGEST_LINE // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return text
