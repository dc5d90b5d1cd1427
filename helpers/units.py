"""Bytes as text and text as bytes: `"600 MB"` <-> `600_000_000`."""

import re
from typing import SupportsIndex

FACTORS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
    "PIB": 2**50,  # nobody has so much, but logs say that it was asked for
    "EIB": 2**60,
}


def parse_bytes(size: str | SupportsIndex, name: str = "size") -> int:
    """Turn a size with a unit into a whole number of bytes.

    >>> parse_bytes("600 MB")
    600000000
    >>> parse_bytes("1.5GiB")
    1610612736
    >>> parse_bytes("600", name="ram")
    Traceback (most recent call last):
    ...
    ValueError: ram="600" has no unit; write "600 MB"
    """
    if isinstance(size, str):
        return _parse_text(size, name)
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f'{name} must be text such as "600 MB" or a whole number of bytes, not {size!r}')
    if int(size) <= 0:
        raise ValueError(f"{name}={size} is not a positive number of bytes")
    if int(size) < 10**6:
        raise ValueError(f'{name}={size} would be {size} bytes; write "{size} MB" if you mean megabytes')
    return int(size)


def _parse_text(text: str, name: str) -> int:
    match = re.fullmatch(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if not match:
        raise ValueError(f'{name}="{text}" is not a size; write a number and a unit, such as "600 MB"')
    number, unit = match.groups()
    if not unit:
        raise ValueError(f'{name}="{text}" has no unit; write "{text.strip()} MB"')
    factor = FACTORS.get(unit.upper())
    if factor is None:
        raise ValueError(
            f'{name}="{text}" has the unknown unit "{unit}"; use one of B, KB, MB, GB, TB, KiB, MiB, GiB'
        )
    if float(number) <= 0:
        raise ValueError(f'{name}="{text}" is not a positive size')
    return int(float(number.replace("_", "")) * factor)


def format_bytes(size: float | None) -> str:
    """Turn bytes into short text with three digits at most that matter.

    >>> [format_bytes(size) for size in (0, 999, 43_210_000, 999_700_000, 1_234_000_000)]
    ['0 B', '999 B', '43 MB', '1.00 GB', '1.23 GB']
    >>> format_bytes(-43_210_000)
    '-43 MB'
    >>> format_bytes(None)
    '-'
    """
    if size is None:
        return "-"
    if size < 0:
        return "-" + format_bytes(-size)
    for unit, digits in (("B", 0), ("KB", 0), ("MB", 0), ("GB", 2), ("TB", 2)):
        number = size / FACTORS[unit]
        if round(number, digits) < 1000:
            break
    return f"{number:.{digits}f} {unit}"
