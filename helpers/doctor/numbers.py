"""The numbers in a log: bytes asked for and bytes there, shapes, batch sizes, epochs."""

import re
from dataclasses import dataclass, field
from math import prod

from helpers.units import FACTORS

ELEMENT_BYTES = {
    "half": 2, "float16": 2, "bfloat16": 2, "float": 4, "float32": 4, "double": 8, "float64": 8,
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8, "complex64": 8, "object": 8,
}  # fmt: skip

_SIZE = r"([0-9][0-9,]*(?:\.[0-9]+)?)\s?(bytes|[KMGTPE]i?B|[KMG]b|[KMGT](?![A-Za-z]))"


def _size(before="", after=""):
    return re.compile(before + _SIZE + after)


# Each entry: the field of Numbers, and where its value stands in a line. A later line overrules an earlier one.
SIZES = (
    (
        "asked",
        _size(
            r"(?i:alloc(?:ate|ating)?|vector)(?: request for| of size| memory for| of)?[: ]+(?:a buffer of )?"
        ),
    ),
    ("asked", _size(r"requested buffer of size:? ")),
    ("asked", re.compile(r"[Aa]lloc(?:ate|ating)? [0-9.]+[KMGT]i?B? \(([0-9]+) ?(bytes|B)")),
    ("asked", re.compile(r"(?:pinned host memory|requested buffer) of size:? ([0-9]+)()")),
    ("device_total", _size(r"(?i:total ?memory: )")),
    ("device_total", _size(r"total capaci?ty of ")),
    ("device_total", _size(r"; ", r" total capacity")),
    ("device_total", re.compile(r"total memory reported: ([0-9]+)()")),
    ("device_free", _size(r"(?i:free ?memory: )")),
    ("device_free", _size(r"; ", r" free\b")),
    ("device_free", _size(r"of which ", r" is free")),
    ("device_used_here", _size(r"; ", r" already allocated")),
    ("device_used_here", _size(r"allocated memory ", r" is allocated by PyTorch")),
    ("device_reserved_idle", _size(r", and ", r" is reserved by PyTorch but unallocated")),
    ("device_reserved", _size(r"; ", r" reserved in total by PyTorch")),
    ("device_limit", re.compile(r"(?:with|GPU:[0-9]) ([0-9]+) (MB) memory")),
    ("device_limit", re.compile(r"\bLimit: +([0-9.]+)([KMGT]i?B|B|)$")),
    ("device_in_use", re.compile(r"\bInUse: +([0-9.]+)([KMGT]i?B|B|)$")),
    ("device_limit", re.compile(r"Used [0-9.]+[KMGT] of ([0-9.]+)([KMGT]) hbm")),
    ("asked", re.compile(r"Used ([0-9.]+)([KMGT]) of [0-9.]+[KMGT] hbm")),
    ("killed_at", re.compile(r"anon-rss:([0-9]+)(kB)")),
    ("group_limit", re.compile(r"memory: usage [0-9]+kB, limit ([0-9]+)(kB)")),
    ("group_limit", re.compile(r"exceeded memory limit \([0-9]+ > ([0-9]+)()\)")),
    ("warned", re.compile(r"Allocation of ([0-9]+)() exceeds")),
)
COUNTS = (
    ("batch_size", re.compile(r"(?i)\bbatch[ _-]?size[\"']?(?: ?[=:] ?| )([0-9]{1,7})\b(?! ?\*)")),
    (
        "samples",
        re.compile(
            r"(?i)\b(?:train(?:ing|ed)? on|found|loaded) ([0-9]{1,9}) (?:samples|images|files|validated)"
        ),
    ),
    ("epoch", re.compile(r"\b[Ee]poch:? ?\[?([0-9]{1,6})(?: ?/| ?of|:|\]|\s*$)")),
    ("shuffled", re.compile(r"shuffle buffer \(this may take a while\): ([0-9]+) of")),
    ("shuffle_buffer", re.compile(r"shuffle buffer \(this may take a while\): [0-9]+ of ([0-9]+)")),
    ("parameters", re.compile(r"Total params: ([0-9][0-9,]*)")),
)
_TENSOR = re.compile(
    r"(tensor|array) (?:with|of) shape ?[\[(]([0-9, ]*)[\])](?: and (?:data )?type ([a-z0-9_]+))?"
)
_MODELS = re.compile(
    r"\b(?:(?:sequential|functional|model|training|Adam|SGD|RMSprop|block[0-9]_conv[0-9])_([0-9]{1,4})"
    r"|Variable_([0-9]{1,3})[0-9]{2})(?=[/_ \])\"':]|\b)"
)
_READING = re.compile(r"(?i)\b(?:rss|ram|memory|mem)\b[^0-9\n]{0,30}([0-9]+(?:\.[0-9]+)?) ?([KMG])i?B\b")
VIRTUAL_GPU = "bfc_cpu_allocator_for_gpu"
MOST_READINGS = 10_000


@dataclass
class Numbers:
    """What a log says in figures; None where it says nothing. Sizes are bytes."""

    asked: int | None = None
    warned: int | None = None
    device_total: int | None = None
    device_free: int | None = None
    device_limit: int | None = None
    device_in_use: int | None = None
    device_used_here: int | None = None
    device_reserved: int | None = None
    device_reserved_idle: int | None = None
    killed_at: int | None = None
    group_limit: int | None = None
    batch_size: int | None = None
    samples: int | None = None
    epoch: int | None = None
    shuffled: int | None = None
    shuffle_buffer: int | None = None
    parameters: int | None = None
    shape: tuple = ()
    element: str = ""
    in_framework: bool = False  # the shape is of a framework's tensor, not of a numpy array
    on_virtual_gpu: bool = False  # the device is a budget, and nobody else is on it
    highest_name: int = 0  # the 7 of `sequential_7`: so many models this process has built
    readings: list = field(default_factory=list)  # memory in use, as the job itself printed it

    @property
    def tensor_bytes(self):
        """The size of the tensor that did not fit, from its shape."""
        return (
            prod(self.shape) * ELEMENT_BYTES.get(self.element, 4) if self.shape or self.in_framework else None
        )

    @property
    def request(self):
        """What was asked for when it ended: exactly, from shape and type, or as the log rounds it."""
        if self.shape and self.element in ELEMENT_BYTES:
            return self.tensor_bytes
        return self.asked or self.tensor_bytes


def read_numbers(lines):
    """Collect the numbers of a log's lines."""
    numbers = Numbers()
    for line in lines:
        _read_sizes(line, numbers)
        for name, pattern in COUNTS:
            if match := pattern.search(line):
                setattr(numbers, name, int(match[1].replace(",", "")))
        _read_tensor(line, numbers)
        numbers.on_virtual_gpu |= VIRTUAL_GPU in line
        for match in _MODELS.finditer(line):
            numbers.highest_name = max(numbers.highest_name, int(match[1] or match[2]))
        if len(numbers.readings) < MOST_READINGS and (reading := _read(_READING, line)) is not None:
            numbers.readings.append(reading)
    return numbers


def _read_sizes(line, numbers):
    for name, pattern in SIZES:
        if (size := _read(pattern, line)) is not None:
            setattr(numbers, name, size)


def _read(pattern, line):
    """The size that a line states; None if there is none, or none that can be."""
    match = pattern.search(line)
    return to_bytes(*match.groups()) if match else None


def _read_tensor(line, numbers):
    match = _TENSOR.search(line)
    if not match:
        return
    shape = tuple(int(part) for part in match[2].replace(" ", "").split(",") if part)
    if prod(numbers.shape) <= prod(shape) < 2**63:  # of several the largest says most
        numbers.shape = shape
        numbers.element = match[3] or ""
        numbers.in_framework = match[1] == "tensor"


def to_bytes(number, unit):
    """`("1.50", "GB")` as bytes; logs mean powers of two even when they write MB; None if it is no number.

    >>> to_bytes("1.50", "GB"), to_bytes("1,024", "bytes"), to_bytes("190.31", "M"), to_bytes("2", "EiB")
    (1610612736, 1024, 199554498, 2305843009213693952)
    """
    try:
        size = int(float(number.replace(",", "")) * FACTORS.get(f"{unit[:1].upper()}IB", 1))
    except (ValueError, OverflowError):
        return None
    return size if size < 2**63 else None
