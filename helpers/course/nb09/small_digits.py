"""scikit-learn's 1,797 real handwritten digits as small colour images, and a short, fixed way to learn them."""

TEST = 597
BATCH = 32
EPOCHS = 4
RATE = 0.005


def small_digits(size=16):
    """Images and labels to train on, and 597 of each to test with; images are `size` by `size` pixels, 0 to 1.

    Each of the 8 by 8 grey pixels becomes a square of equal ones, in three equal colours.

    >>> (images, labels), (test_images, test_labels) = small_digits()
    >>> images.shape, test_images.shape
    ((1200, 16, 16, 3), (597, 16, 16, 3))
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 8 or size % 8:
        raise ValueError(f"size={size!r} is no multiple of 8; write 8, 16 or 32")
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    grey, labels = load_digits(return_X_y=True)
    images = (grey / 16).astype("float32").reshape(-1, 8, 8, 1)
    images = images.repeat(size // 8, axis=1).repeat(size // 8, axis=2).repeat(3, axis=3)
    parts = train_test_split(images, labels, test_size=TEST, stratify=labels, random_state=0)
    train_images, test_images, train_labels, test_labels = parts
    return (train_images, train_labels), (test_images, test_labels)


def learn(model, images, labels, epochs=EPOCHS, rate=RATE):
    """Train a Keras classifier with Adam, the learning rate falling from `rate` to zero, and return it.

    The falling rate makes short trainings with the same seed end in much the same place.
    """
    import keras

    steps = epochs * -(-len(images) // BATCH)
    schedule = keras.optimizers.schedules.CosineDecay(rate, steps)
    loss = "sparse_categorical_crossentropy"
    model.compile(keras.optimizers.Adam(schedule), loss=loss, jit_compile=False)
    model.fit(images, labels, batch_size=BATCH, epochs=epochs, verbose=0)
    return model


def accuracy(model, images, labels):
    """The share of the images that a Keras classifier names right."""
    import numpy

    answers = numpy.concatenate(
        [model(images[start : start + 256]) for start in range(0, len(images), 256)]
    ).argmax(axis=1)
    return float((answers == labels).mean())
