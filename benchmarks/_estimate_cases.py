"""The models of the estimate's benchmark. `DEVELOPMENT` cases were looked at while the estimate was written; `HELD_OUT`
cases were not."""

SPARSE = "sparse_categorical_crossentropy"
BINARY = "binary_crossentropy"


def plain_cnn(size, filters=(32, 64, 128), normalize=False, flatten=False, pool=True):
    """Convolutions with pooling, global average or flattened, and a dense head."""
    import keras
    from keras import layers

    x = inputs = keras.Input((size, size, 3))
    for count in filters:
        x = layers.Conv2D(count, 3, strides=1 if pool else 2, padding="same", use_bias=not normalize)(x)
        x = layers.BatchNormalization()(x) if normalize else x
        x = layers.Activation("relu")(x)
        x = layers.MaxPooling2D()(x) if pool else x
    x = layers.Flatten()(x) if flatten else layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(256, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(x))


def application(name, size):
    """A model of keras.applications with random weights."""
    import keras

    return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=10)


def unet(size, base, depth=3):
    """An encoder and a decoder with skip connections."""
    import keras
    from keras import layers

    def block(x, count):
        for _ in range(2):
            x = layers.Conv2D(count, 3, padding="same", activation="relu")(x)
        return x

    x = inputs = keras.Input((size, size, 3))
    skips = []
    for level in range(depth):
        x = block(x, base * 2**level)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, base * 2**depth)
    for level in reversed(range(depth)):
        x = layers.Conv2DTranspose(base * 2**level, 2, strides=2, padding="same")(x)
        x = block(layers.Concatenate()([x, skips[level]]), base * 2**level)
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))


def lstm(steps, features, units, stacked=True):
    """Recurrent layers over a sequence of numbers."""
    import keras
    from keras import layers

    first = [layers.LSTM(units, return_sequences=True)] if stacked else []
    return keras.Sequential([keras.Input((steps, features)), *first, layers.LSTM(units), layers.Dense(1)])


def tokens_lstm(steps, vocabulary, width, units):
    """An embedding and one recurrent layer."""
    import keras
    from keras import layers

    return keras.Sequential(
        [
            keras.Input((steps,), dtype="int32"),
            layers.Embedding(vocabulary, width),
            layers.LSTM(units),
            layers.Dense(1, activation="sigmoid"),
        ]
    )


def transformer(steps, vocabulary, width, heads, blocks, dropout=0.1):
    """Self-attention blocks with a classification head."""
    import keras
    from keras import layers

    inputs = keras.Input((steps,), dtype="int32")
    x = layers.Embedding(vocabulary, width)(inputs)
    for _ in range(blocks):
        attended = layers.MultiHeadAttention(heads, width // heads, dropout=dropout)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        hidden = layers.Dense(4 * width, activation="gelu")(x)
        hidden = layers.Dropout(dropout)(layers.Dense(width)(hidden))
        x = layers.LayerNormalization()(layers.Add()([x, hidden]))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(inputs, layers.Dense(4, activation="softmax")(x))


def mlp(inputs, width, depth):
    """Wide dense layers."""
    import keras
    from keras import layers

    hidden = [layers.Dense(width, activation="relu") for _ in range(depth)]
    return keras.Sequential([keras.Input((inputs,)), *hidden, layers.Dense(10, activation="softmax")])


def bag_of_words(steps, vocabulary, width):
    """A large embedding, averaged."""
    import keras
    from keras import layers

    return keras.Sequential(
        [
            keras.Input((steps,), dtype="int32"),
            layers.Embedding(vocabulary, width),
            layers.GlobalAveragePooling1D(),
            layers.Dense(64, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )


def two_inputs(size, columns):
    """An image and a table row, joined."""
    import keras
    from keras import layers

    image, row = keras.Input((size, size, 3), name="image"), keras.Input((columns,), name="row")
    x = layers.Conv2D(32, 3, activation="relu")(image)
    x = layers.Conv2D(32, 3, strides=2, activation="relu")(x)
    x = layers.AveragePooling2D(2)(x)
    x = layers.Flatten()(x)
    y = layers.Dense(512, activation="relu")(row)
    x = layers.Dense(128, activation="relu")(layers.Concatenate()([x, y]))
    return keras.Model([image, row], layers.Dense(10, activation="softmax")(x))


def subclassed(size):
    """Residual blocks in a subclass of keras.Model."""
    import keras
    import numpy
    from keras import layers

    class Residual(keras.Model):
        def __init__(self):
            super().__init__()
            self.stem = layers.Conv2D(32, 3, padding="same", activation="relu")
            self.convolutions = [layers.Conv2D(32, 3, padding="same") for _ in range(6)]
            self.norms = [layers.BatchNormalization() for _ in range(6)]
            self.pool = layers.GlobalAveragePooling2D()
            self.head = layers.Dense(10, activation="softmax")

        def call(self, inputs, training=False):
            x = self.stem(inputs)
            for convolution, norm in zip(self.convolutions, self.norms, strict=True):
                x = x + keras.ops.relu(norm(convolution(x), training=training))
            return self.head(self.pool(x))

    model = Residual()
    model(numpy.zeros((1, size, size, 3), dtype="float32"))
    return model


def separable(size):
    """Depthwise separable convolutions with BatchNorm and dropout."""
    import keras
    from keras import layers

    x = inputs = keras.Input((size, size, 3))
    for count in (32, 64, 128):
        x = layers.SeparableConv2D(count, 3, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization()(x))
        x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(x))


def sequence_to_sequence(steps, features, units):
    """An LSTM with an output for each step."""
    import keras
    from keras import layers

    recurrent = layers.LSTM(units, return_sequences=True)
    return keras.Sequential([keras.Input((steps, features)), recurrent, layers.Dense(4)])


def stacked_gru(steps, features, units):
    """Two GRU layers over a sequence of numbers."""
    import keras
    from keras import layers

    recurrent = [layers.GRU(units, return_sequences=True), layers.GRU(units)]
    return keras.Sequential([keras.Input((steps, features)), *recurrent, layers.Dense(1)])


def recurrent_both_ways(steps, vocabulary, width, units, layer="GRU"):
    """A bidirectional recurrent layer over tokens."""
    import keras
    from keras import layers

    inputs = keras.Input((steps,), dtype="int32")
    x = layers.Bidirectional(getattr(layers, layer)(units))(layers.Embedding(vocabulary, width)(inputs))
    return keras.Model(inputs, layers.Dense(5, activation="softmax")(x))


def waves(steps, channels):
    """One-dimensional convolutions, dilated, with residual connections."""
    import keras
    from keras import layers

    inputs = keras.Input((steps, channels))
    x = layers.Conv1D(64, 5, padding="same", activation="relu")(inputs)
    for rate in (1, 2, 4):
        y = layers.Conv1D(64, 3, padding="same", dilation_rate=rate, activation="relu")(x)
        x = layers.Add()([x, y])
    return keras.Model(inputs, layers.Dense(1)(layers.GlobalMaxPooling1D()(x)))


def autoencoder(size):
    """Strided convolutions down, transposed convolutions up, with BatchNorm."""
    import keras
    from keras import layers

    x = inputs = keras.Input((size, size, 3))
    for count in (32, 64, 128):
        x = layers.Conv2D(count, 3, strides=2, padding="same")(x)
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    for count in (64, 32, 16):
        x = layers.Conv2DTranspose(count, 3, strides=2, padding="same")(x)
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    return keras.Model(inputs, layers.Conv2D(3, 3, padding="same")(x))


def convolutional_lstm(steps, size, filters):
    """A recurrent layer whose states are images."""
    import keras
    from keras import layers

    inputs = keras.Input((steps, size, size, 2))
    x = layers.GlobalAveragePooling2D()(layers.ConvLSTM2D(filters, 3, padding="same")(inputs))
    return keras.Model(inputs, layers.Dense(4, activation="softmax")(x))


def grouped_blocks(size, width, blocks):
    """ConvNeXt's blocks: a convolution of each channel for itself, then dense layers."""
    import keras
    from keras import layers

    inputs = keras.Input((size, size, 3))
    x = layers.Conv2D(width, 4, strides=4)(inputs)
    for _ in range(blocks):
        y = layers.Conv2D(width, 7, padding="same", groups=width)(x)
        y = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(y))
        x = layers.Add()([x, layers.Dense(width)(y)])
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def vision_transformer(size, patch, width, heads, blocks):
    """Patches of an image as a sequence, with learned positions."""
    import keras
    from keras import layers

    inputs = keras.Input((size, size, 3))
    count = (size // patch) ** 2
    x = layers.Reshape((count, width))(layers.Conv2D(width, patch, strides=patch)(inputs))
    x = x + layers.Embedding(count, width)(keras.ops.arange(count))
    for _ in range(blocks):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(heads, width // heads)(y, y)
        y = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(width)(y)
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling1D()(x)))


def language_model(steps, vocabulary, width, heads, blocks):
    """Attention that looks back only, with a prediction for each position."""
    import keras
    from keras import layers

    inputs = keras.Input((steps,), dtype="int32")
    x = layers.Embedding(vocabulary, width)(inputs)
    for _ in range(blocks):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(heads, width // heads)(y, y, use_causal_mask=True)
        y = layers.Dense(4 * width, activation="relu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(width)(y)
    return keras.Model(inputs, layers.Dense(vocabulary, activation="softmax")(x))


def translator(source, target, vocabulary, units):
    """An LSTM that reads, and one that starts from its states and writes."""
    import keras
    from keras import layers

    read, written = keras.Input((source,), dtype="int32"), keras.Input((target,), dtype="int32")
    _, *states = layers.LSTM(units, return_state=True)(layers.Embedding(vocabulary, 64)(read))
    x = layers.Embedding(vocabulary, 64)(written)
    x = layers.LSTM(units, return_sequences=True)(x, initial_state=states)
    return keras.Model([read, written], layers.Dense(vocabulary, activation="softmax")(x))


def volumes(depth, size):
    """Three-dimensional convolutions."""
    import keras
    from keras import layers

    x = inputs = keras.Input((depth, size, size, 1))
    for count in (16, 32):
        x = layers.MaxPooling3D()(layers.Conv3D(count, 3, padding="same", activation="relu")(x))
    return keras.Model(inputs, layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling3D()(x)))


def twins(size):
    """One network for both of two images, and how far its answers are apart."""
    import keras
    from keras import layers

    tower = plain_cnn(size, (32, 64))
    first, second = keras.Input((size, size, 3)), keras.Input((size, size, 3))
    apart = keras.ops.absolute(tower(first) - tower(second))
    return keras.Model([first, second], layers.Dense(1, activation="sigmoid")(apart))


def frozen_base(size):
    """A network that is not trained, with a head that is."""
    import keras
    from keras import layers

    base = keras.applications.MobileNetV2(
        weights=None, include_top=False, input_shape=(size, size, 3), pooling="avg"
    )
    base.trainable = False
    inputs = keras.Input((size, size, 3))
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(base(inputs, training=False)))


# name: (how to build it, batch size, optimizer, loss, further arguments of the estimate)
DEVELOPMENT = {
    "CNN": (lambda: plain_cnn(64), 32, "adam", SPARSE, {}),
    "CNN 16/32/64": (lambda: plain_cnn(96, (16, 32, 64)), 64, "sgd", SPARSE, {}),
    "CNN, strides": (lambda: plain_cnn(96, (48, 96, 192), pool=False), 16, "momentum", SPARSE, {}),
    "CNN, Flatten": (lambda: plain_cnn(128, flatten=True), 2, "adam", SPARSE, {}),
    "CNN, BatchNorm": (lambda: plain_cnn(64, normalize=True), 16, "sgd", SPARSE, {}),
    "CNN, BatchNorm, deep": (
        lambda: plain_cnn(96, (32, 32, 64, 64, 128), normalize=True),
        32,
        "adam",
        SPARSE,
        {},
    ),
    "MLP 1024": (lambda: mlp(784, 1024, 4), 64, "momentum", SPARSE, {}),
    "MLP 4096": (lambda: mlp(1024, 4096, 3), 32, "adam", SPARSE, {}),
    "LSTM on tokens": (lambda: tokens_lstm(64, 5000, 64, 128), 32, "adam", BINARY, {}),
    "LSTM, stacked": (lambda: lstm(48, 16, 96), 64, "adam", "mse", {}),
    "LSTM": (lambda: lstm(80, 24, 160, stacked=False), 16, "momentum", "mse", {}),
    "GRU, bidirectional": (lambda: recurrent_both_ways(60, 8000, 48, 96), 64, "adam", SPARSE, {}),
    "Transformer, 2 blocks": (lambda: transformer(128, 4000, 128, 4, 2, dropout=0.0), 16, "adam", SPARSE, {}),
    "U-Net, 2 levels": (lambda: unet(64, 16, depth=2), 8, "adam", BINARY, {}),
    "VGG16": (lambda: application("VGG16", 96), 4, "sgd", SPARSE, {}),
    "DenseNet121": (lambda: application("DenseNet121", 96), 8, "momentum", SPARSE, {}),
    "LSTM, 1,000 steps": (lambda: lstm(1000, 8, 32, stacked=False), 16, "adam", "mse", {}),
    "GRU, 250 steps": (lambda: stacked_gru(250, 12, 48), 32, "sgd", "mse", {}),
    "ConvLSTM": (lambda: convolutional_lstm(12, 24, 16), 8, "adam", SPARSE, {}),
    "Vision Transformer": (lambda: vision_transformer(96, 8, 96, 4, 3), 8, "adam", SPARSE, {}),
    "Twins": (lambda: twins(64), 16, "adam", BINARY, {}),
    "ConvNeXt, 2 blocks": (lambda: grouped_blocks(64, 384, 2), 4, "adam", SPARSE, {}),
}
HELD_OUT = {
    "CNN, no BatchNorm": (lambda: plain_cnn(112, (24, 48, 96, 96)), 24, "momentum", SPARSE, {}),
    "CNN, BatchNorm, batch 1": (lambda: plain_cnn(160, (32, 64), normalize=True), 1, "adam", SPARSE, {}),
    "CNN, separable": (lambda: separable(96), 16, "adam", SPARSE, {}),
    "MobileNetV2": (lambda: application("MobileNetV2", 96), 16, "adam", SPARSE, {}),
    "ResNet50": (lambda: application("ResNet50", 96), 8, "momentum", SPARSE, {}),
    "EfficientNetB0": (lambda: application("EfficientNetB0", 96), 8, "adam", SPARSE, {}),
    "Xception": (lambda: application("Xception", 96), 4, "sgd", SPARSE, {}),
    "U-Net, 3 levels": (lambda: unet(96, 24), 4, "adam", BINARY, {}),
    "Autoencoder": (lambda: autoencoder(96), 32, "adam", "mse", {}),
    "LSTM to sequence": (lambda: sequence_to_sequence(72, 20, 112), 24, "momentum", "mse", {}),
    "GRU, stacked": (lambda: stacked_gru(90, 12, 64), 48, "adam", "mse", {}),
    "LSTM, bidirectional": (lambda: recurrent_both_ways(110, 3000, 40, 56, "LSTM"), 16, "sgd", SPARSE, {}),
    "Conv1D, dilated": (lambda: waves(512, 8), 32, "adam", "mse", {}),
    "Transformer, 4 blocks": (lambda: transformer(96, 8000, 192, 6, 4), 8, "adam", SPARSE, {}),
    "MLP 3000": (lambda: mlp(2000, 3000, 2), 64, "momentum", SPARSE, {}),
    "Embedding 200,000": (lambda: bag_of_words(100, 200_000, 64), 64, "sgd", BINARY, {}),
    "Two inputs": (lambda: two_inputs(64, 256), 32, "momentum", SPARSE, {}),
    "Subclassed": (lambda: subclassed(48), 32, "adam", SPARSE, {}),
    "CNN, mixed_float16": (lambda: plain_cnn(96), 16, "adam", SPARSE, {"precision": "mixed_float16"}),
    "CNN, accumulated": (lambda: plain_cnn(96), 16, "adam", SPARSE, {"accumulation": 4}),
    "Language model": (lambda: language_model(128, 5000, 128, 4, 2), 8, "adam", SPARSE, {}),
    "Translator": (lambda: translator(40, 30, 2000, 96), 32, "adam", SPARSE, {}),
    "Conv3D": (lambda: volumes(12, 32), 8, "adam", SPARSE, {}),
    "Frozen MobileNetV2": (lambda: frozen_base(96), 16, "adam", SPARSE, {}),
}
CASES = {**DEVELOPMENT, **HELD_OUT}
