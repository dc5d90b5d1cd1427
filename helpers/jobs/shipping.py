"""Sending a function and its arguments to another process, and saying what is too large or cannot be sent."""

import inspect
import io
import pickle
import struct

import cloudpickle

from helpers.jobs import main_module
from helpers.units import format_bytes

LARGEST = 50 * 10**6


COUNT, LENGTH = struct.Struct("!I"), struct.Struct("!Q")


class TooLarge(Exception):
    """Raised while pickling, before the whole of a huge object was copied."""


class _BoundedFile(io.BytesIO):
    def write(self, piece):
        if self.tell() + memoryview(piece).nbytes > LARGEST:
            raise TooLarge
        return super().write(piece)


def pack(thing):
    """Pickle `thing`; gives up at 50 MB instead of filling the caller's memory."""
    file = _BoundedFile()

    def check_buffer(buffer):
        if file.tell() + buffer.raw().nbytes > LARGEST:
            raise TooLarge
        return True

    pickler = main_module.Pickler(file, protocol=5, buffer_callback=check_buffer)
    pickler.dump(thing)
    if pickler.found:
        pickler.dump(pickler.found)
    return file.getvalue()


def unpack(pickled):
    """In the job: the thing again; what the caller's `__main__` calls by a name is called so in the job's."""
    file = io.BytesIO(pickled)
    unpickler = pickle.Unpickler(file)
    thing = unpickler.load()
    if file.tell() < len(pickled):
        main_module.names().update(unpickler.load())
    return thing


class _CountingFile(io.BytesIO):
    """Keeps what is written as long as it is small enough to be sent, and counts all of it."""

    size = 0

    def write(self, piece):
        length = memoryview(piece).nbytes
        self.size += length
        if self.size <= LARGEST:
            return super().write(piece)
        self.seek(0)
        self.truncate()
        return length


def pack_result(value):
    """The size of a job's result, packed, and its pieces to be sent one after the other: large arrays as they lie in
    memory, since there may be no room for a copy. Pieces of more than `LARGEST` bytes in all are not whole."""
    file, buffers = _CountingFile(), []
    cloudpickle.Pickler(file, protocol=5, buffer_callback=buffers.append).dump(value)
    raw = [buffer.raw() for buffer in buffers]
    lengths = b"".join(LENGTH.pack(piece.nbytes) for piece in raw)
    pieces = [file.getbuffer(), *raw, lengths + COUNT.pack(len(raw))]
    return sum(memoryview(piece).nbytes for piece in raw) + file.size, pieces


def unpack_result(payload):
    """In the caller: the value of what `pack_result` made."""
    end = len(payload) - COUNT.size
    (count,) = COUNT.unpack_from(payload, end)
    begin = end - count * LENGTH.size
    lengths = [length for (length,) in LENGTH.iter_unpack(payload[begin:end])]
    start, buffers = begin - sum(lengths), []
    for length in lengths:
        buffers.append(bytearray(payload[start : start + length]))  # which can be written to
        start += length
    return pickle.loads(payload, buffers=buffers)


def pack_job(job, arguments, keywords):
    """The bytes of a function and of its arguments, or an error that names the variable to blame."""
    if not callable(job):
        kind = type(job).__name__
        raise TypeError(
            f"run needs a function, not {kind}; write run(load, path), which calls it in the job, "
            "not run(load(path)), which calls it here"
        )
    try:
        return pack(job), pack((arguments, keywords))
    except TooLarge:
        name = _culprit(job, arguments, keywords, TooLarge)
        raise ValueError(
            f"the job cannot be shipped: {name} is larger than {format_bytes(LARGEST)}; "
            "make or load it inside the job, or pass the path of a file"
        ) from None
    except Exception as error:
        name = _culprit(job, arguments, keywords, type(error))
        raise TypeError(
            f"the job cannot be shipped: {name} cannot be pickled ({error}); make it inside the job"
        ) from None


def _culprit(job, arguments, keywords, kind):
    """The first thing that the job takes along and that fails alone, by name."""
    for name, thing in _luggage(job, arguments, keywords):
        try:
            pack(thing)
        except kind:
            return name
        except Exception:
            continue
    return "what it takes along, all in all,"


def _luggage(job, arguments, keywords):
    names = _parameter_names(job)
    for position, argument in enumerate(arguments):
        name = names[position] if position < len(names) else f"number {position + 1}"
        yield f"the argument {name}", argument
    for name, argument in keywords.items():
        yield f"the argument {name}", argument
    try:
        captured = inspect.getclosurevars(job)
    except TypeError:
        return
    for name, thing in {**captured.globals, **captured.nonlocals}.items():
        yield f"the variable {name}, which it uses,", thing


def _parameter_names(job):
    try:
        return list(inspect.signature(job).parameters)
    except (TypeError, ValueError):
        return []
