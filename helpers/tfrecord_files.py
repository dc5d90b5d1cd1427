"""Writes images and labels as TFRecord files, byte for byte as TensorFlow does, without importing TensorFlow.

The import would take longer than all the writing. A record is its length, a checksum of the length, the data, and a
checksum of the data; the data is a `tf.train.Example`. The checksum is CRC-32C, here for many records at once.
"""

import functools

import numpy as np

POLYNOMIAL = 0x82F63B78
BLOCKS = 64
"""Each record is cut into so many blocks, whose checksums grow side by side and are put together in the end."""


def tfrecords(images, labels):
    """The bytes of one record for each image of unsigned bytes, with its label from 0 to 127.

    >>> [len(record) for record in tfrecords(np.zeros((2, 4, 4, 3), "uint8"), [3, 7])]
    [97, 97]
    """
    examples = [example(image.tobytes(), int(label)) for image, label in zip(images, labels, strict=True)]
    rows = np.frombuffer(b"".join(examples), "uint8").reshape(len(examples), -1)
    length = len(examples[0]).to_bytes(8, "little")
    head = length + _masked(crc32c(np.frombuffer(length, "uint8")[None]))[0].tobytes()
    sums = _masked(crc32c(rows))
    return [head + data + checksum.tobytes() for data, checksum in zip(examples, sums, strict=True)]


def example(image, label):
    """A serialised `tf.train.Example` with the features `image` (bytes) and `label` (a number from 0 to 127)."""
    byte_list = _field(1, image)
    number_list = _field(1, bytes([label]))
    features = {"image": _field(1, byte_list), "label": _field(3, number_list)}
    entries = [_field(1, name.encode()) + _field(2, feature) for name, feature in features.items()]
    return _field(1, b"".join(_field(1, entry) for entry in entries))


def _field(number, content):
    """A field of a protocol buffer that holds bytes or another message."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number):
    digits = []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def crc32c(rows):
    """The CRC-32C of each row of four bytes and more.

    >>> hex(crc32c(np.frombuffer(b"123456789", "uint8")[None])[0])
    '0xe3069283'
    """
    count, length = rows.shape
    width = 2 * -(-length // (2 * BLOCKS))
    padded = np.zeros((count, BLOCKS * width), "uint8")  # zeros in front of a message change nothing
    padded[:, -length:] = rows
    padded[:, -length:][:, :4] ^= 0xFF
    columns = padded.view("<u2").reshape(count * BLOCKS, -1).T.astype("uint32", order="C")
    blocks = _advance(np.zeros(count * BLOCKS, "uint32"), columns).reshape(count, BLOCKS)
    total = blocks[:, 0]
    for block in blocks.T[1:]:
        total = _shifted(total, width) ^ block
    return total ^ np.uint32(0xFFFFFFFF)


def _advance(sums, columns):
    """The sums after two more bytes of each row for every column."""
    table = _table()
    for column in columns:
        sums = table[(sums ^ column) & 0xFFFF] ^ (sums >> 16)
    return sums


@functools.cache
def _table():
    """What two bytes do to a checksum of zero."""
    sums = np.arange(2**16, dtype="uint32")
    for _ in range(16):
        sums = (sums >> 1) ^ (np.uint32(POLYNOMIAL) * (sums & 1))
    return sums


def _shifted(sums, width):
    """The sums after `width` zero bytes: a linear map, looked up for each byte of a sum."""
    tables = _zeros_table(width)
    return functools.reduce(np.bitwise_xor, (tables[place][sums >> 8 * place & 0xFF] for place in range(4)))


@functools.cache
def _zeros_table(width):
    starts = np.arange(256, dtype="uint32") << np.arange(0, 32, 8, dtype="uint32")[:, None]
    return _advance(starts.ravel(), np.zeros(width // 2, "uint32")).reshape(4, 256)


def _masked(sums):
    """TFRecord turns its checksums a little, since a checksum of data with checksums in it is weak."""
    return ((sums >> 15 | sums << 17) + np.uint32(0xA282EAD8)).astype("<u4")
