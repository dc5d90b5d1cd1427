"""What the numbers of a log say to each other: batch or data set, weights or activations, whose card it is."""

from helpers.units import format_bytes

SMALL = 4 * 2**20  # a tensor below this is the last straw, not the load
TINY_CARD = 256 * 2**20  # no card is so small: the rest of it was taken


def card_is_mostly_taken(numbers):
    """The card had little left when the job came: someone else is on it."""
    total = numbers.device_total
    if numbers.on_virtual_gpu:
        return False
    if total and numbers.device_free is not None and numbers.device_used_here is None:
        return numbers.device_free < 0.5 * total
    if total and numbers.device_used_here is not None:
        here = numbers.device_reserved or numbers.device_used_here + (numbers.device_reserved_idle or 0)
        return total - here - (numbers.device_free or 0) > 0.4 * total
    return numbers.device_limit is not None and numbers.device_limit < TINY_CARD


def memory_is_in_pieces(numbers):
    """More was free than was asked for, so the free memory lay in pieces."""
    asked = numbers.asked
    if not asked:
        return False
    idle = numbers.device_reserved_idle
    if idle is None and numbers.device_reserved and numbers.device_used_here:
        idle = numbers.device_reserved - numbers.device_used_here
    if idle is None and numbers.device_limit and numbers.device_in_use:
        idle = numbers.device_limit - numbers.device_in_use
        enough = idle > max(1.5 * asked, 0.1 * numbers.device_limit)
        return enough and numbers.device_in_use > 0.3 * numbers.device_limit
    return idle is not None and idle > 1.5 * asked and idle > 0.15 * (numbers.device_total or idle)


def request_is_large(numbers):
    """Large enough to be what filled the memory, and not the last straw."""
    return (numbers.request or 0) >= 100 * 2**20


def is_last_straw(numbers):
    """So small a tensor cannot be what filled the card."""
    return numbers.in_framework and numbers.tensor_bytes < SMALL


def is_late(numbers):
    """At least one epoch went well, so one step does fit."""
    return (numbers.epoch or 0) >= 2


def first_number_is_the_batch(numbers):
    """The tensor that did not fit has the log's batch size in the first place."""
    batch, shape = numbers.batch_size, numbers.shape
    return bool(batch and batch > 1 and len(shape) >= 2 and shape[0] == batch and not is_late(numbers))


def readings_level_off(numbers):
    """The job printed its memory again and again, and in the second half it no longer grew."""
    half = numbers.readings[len(numbers.readings) // 2 :]
    return len(half) >= 4 and max(half) - min(half) <= 0.03 * max(half)


def printed_a_large_request(numbers):
    """TensorFlow warned of an allocation large enough to matter on any machine."""
    return (numbers.warned or 0) > 500 * 10**6


def built_many_models(numbers):
    """Names such as `sequential_7` show that one process built one model after another."""
    return numbers.highest_name >= 4


def is_kernel(shape):
    """The kernel of a convolution, (3, 3, 512, 512) or (512, 512, 3, 3)."""
    if len(shape) not in (4, 5):
        return False
    first, last = set(shape[:-2]), set(shape[2:])
    return max(shape) >= 16 and ((len(first) == 1 and 1 < max(first) <= 11) or last in ({3}, {5}))


def is_weights(numbers):
    """A convolution kernel (3, 3, 512, 512), or the matrix of a Dense layer after a Flatten (25088, 4096)."""
    shape = numbers.shape
    if not numbers.in_framework or numbers.tensor_bytes < SMALL:
        return False
    if is_kernel(shape):
        return True
    if len(shape) != 2:
        return False
    round_width = shape[1] in (128, 256, 512, 1024, 2048, 4096)
    after_flatten = (
        shape[0] >= 4096 and shape[0] % 16 == 0 and shape[1] >= 64 and (shape[0] % 1000 or round_width)
    )
    return bool(after_flatten or shape[1] >= 100_000)


def is_table(numbers):
    """A tall matrix on a device (400001, 300) at the start: an embedding, more often than data."""
    tall = len(numbers.shape) == 2 and numbers.shape[0] > 4096
    return numbers.in_framework and tall and not is_late(numbers)


def is_batch(numbers):
    """Activations of a batch in the first epoch: a small first number and at least two more."""
    shape = numbers.shape
    batch_like = numbers.in_framework and len(shape) >= 3 and 2 <= shape[0] <= 4096
    return batch_like and not is_kernel(shape) and not is_weights(numbers) and not is_late(numbers)


def is_many_activations(numbers):
    """More than one example of them, in the first epoch."""
    return (
        numbers.in_framework
        and numbers.shape[:1] > (1,)
        and not ends_square(numbers)
        and not is_late(numbers)
    )


def is_data_set(numbers):
    """Examples in the thousands in the first place: the data set and not a batch."""
    rank = 3 if numbers.in_framework else 2
    return len(numbers.shape) >= rank and numbers.shape[0] > 4096 and not is_weights(numbers)


def is_tall(numbers):
    """Thousands in the first place, in the first epoch, of whatever it is."""
    return (is_data_set(numbers) or is_table(numbers)) and not is_late(numbers)


def is_activations_of_data_set(numbers):
    """A round number of examples with more channels than an image has: a layer was given the whole set at once."""
    shape = numbers.shape
    channels = {shape[1], shape[-1]} if len(shape) == 4 else {1}
    return is_data_set(numbers) and shape[0] % 100 == 0 and not channels & {1, 2, 3, 4}


def is_large_data_set(numbers):
    """An array of the data set, large enough to be what filled the memory."""
    return is_data_set(numbers) and request_is_large(numbers)


def is_single_example(numbers):
    """Activations of a batch of one."""
    shape = numbers.shape
    return numbers.in_framework and shape[:1] == (1,) and len(shape) >= 3 and not is_weights(numbers)


def is_square(numbers):
    """A matrix of n x n, as distances and correlations are."""
    return len(numbers.shape) == 2 and numbers.shape[0] == numbers.shape[1] >= 10_000


def ends_square(numbers):
    """Many matrices of n x n, as attention scores are."""
    return len(numbers.shape) > 2 and numbers.shape[-1] == numbers.shape[-2] >= 1_024


def only_batch_size_is_known(numbers):
    """The log names a batch size, and no shape that could say more."""
    return (numbers.batch_size or 0) >= 4 and not numbers.shape and not is_late(numbers)


def explain(numbers):
    """Sentences that put the numbers side by side."""
    sentences = []
    if numbers.request:
        sentences.append(_explain_request(numbers))
    if card_is_mostly_taken(numbers) and (numbers.device_free or numbers.device_limit):
        room = numbers.device_free if numbers.device_free is not None else numbers.device_limit
        of = f" of {format_bytes(numbers.device_total)}" if numbers.device_total else ""
        sentences.append(
            f"The job found {format_bytes(room)}{of} of the card free: another process holds the rest."
        )
    elif memory_is_in_pieces(numbers):
        sentences.append("More was free than was asked for, in pieces too small for it.")
    if numbers.shuffle_buffer:
        sentences.append(
            f"The shuffle buffer holds {numbers.shuffle_buffer:,} elements; {numbers.shuffled:,} were in it."
        )
    if numbers.killed_at:
        sentences.append(
            f"The kernel found {format_bytes(numbers.killed_at)} in the process when it killed it."
        )
    if numbers.group_limit:
        sentences.append(f"The limit of its group was {format_bytes(numbers.group_limit)}.")
    return tuple(sentences)


def _explain_request(numbers):
    sentence = f"It asked for {format_bytes(numbers.request)}"
    if numbers.shape:
        shape = " x ".join(f"{extent:,}" for extent in numbers.shape)
        sentence += f" for an array of {shape}" + (f" {numbers.element}" if numbers.element else "")
    room = numbers.device_limit or numbers.device_total
    if room:
        sentence += f"; the device has {format_bytes(room)}"
    return sentence + "."
