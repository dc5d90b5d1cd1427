"""The Keras models of the course, compiled; jobs train them.

Keras is imported in the functions: a notebook may import this module without waiting for TensorFlow.
"""


def delay_model(features):
    """A small network that says how likely a flight is to arrive late.

    The first three of its `features` are month, hour and distance; the others are zeros and ones.
    """
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((features,)),
            layers.Rescaling([1 / 12, 1 / 24, 1 / 2500] + [1.0] * (features - 3)),
            layers.Dense(32, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    # XLA compiles once for each batch size; the last batch has a size of its own.
    model.compile(keras.optimizers.Adam(0.02), loss="binary_crossentropy", jit_compile=False)
    return model


def digit_model(size=128):
    """A small network that names the digit on a colour image of `size` by `size` pixels, with values from 0 to 1.

    It looks at 16 by 16 of them: a digit has no more detail. Two epochs over 2,400 images teach it most digits.
    """
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((size, size, 3)), layers.Resizing(16, 16)])
    model.add(layers.Rescaling(2, offset=-1))
    for count in (16, 32):
        model.add(layers.Conv2D(count, 3, padding="same", activation="relu"))
        model.add(layers.MaxPooling2D())
    model.add(layers.Flatten())
    model.add(layers.Dense(10, activation="softmax"))
    optimizer = keras.optimizers.Adam(0.006)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
    return model


def image_cnn(
    size=256,
    filters=(32, 64, 128),
    head=256,
    flatten=False,
    optimizer="adam",
    *,
    separable=False,
    strides=False,
    normalize=False,
    seed=0,
):
    """A plain network for colour images of `size` by `size` pixels and ten classes.

    `filters=(32, 64, 128), head=256` is the course's larger one, `filters=(16, 32, 64), head=128` the smaller.
    Between convolutions and head stands global average pooling, or `Flatten`, with all the weights that this costs.
    `separable` splits each convolution in two, `strides` lets it skip every other pixel in place of pooling,
    `normalize` adds batch normalization after it. `seed` draws the first weights.
    """
    import keras
    from keras import layers

    keras.utils.set_random_seed(seed)
    convolution = layers.SeparableConv2D if separable else layers.Conv2D
    # Keras scales the first half of a separable convolution for all channels, though a filter there sees only one.
    options = {"depthwise_initializer": keras.initializers.RandomUniform(-0.5, 0.5)} if separable else {}
    options |= {"strides": 2 if strides else 1, "activation": None if normalize else "relu"}
    model = keras.Sequential([keras.Input((size, size, 3))], name="image_cnn")
    for count in filters:
        model.add(convolution(count, 3, padding="same", **options))
        if normalize:
            # The default momentum of 0.99 needs more steps than a small run takes.
            model.add(layers.BatchNormalization(momentum=0.9))
            model.add(layers.ReLU())
        if not strides:
            model.add(layers.MaxPooling2D())
    model.add(layers.Flatten() if flatten else layers.GlobalAveragePooling2D())
    model.add(layers.Dense(head, activation="relu"))
    model.add(layers.Dense(10, activation="softmax"))
    model.compile(optimizer, loss="sparse_categorical_crossentropy", jit_compile=False)
    return model


def pixel_model(size=128, classes=8):
    """A network that names the class of every pixel: its output is larger than its input."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    convolution = layers.Conv2D(classes, 3, padding="same", activation="softmax")
    return keras.Sequential([keras.Input((size, size, 3)), convolution], name="pixel_model")
