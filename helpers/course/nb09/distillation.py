"""A student: one small network that learns again and again from its beginning, from labels or from a teacher."""

import numpy

from helpers.course.models import image_cnn

BATCH = 32
STEPS = 100
RATE = 0.01


class Student:
    """A small image network that forgets all it knows before each lesson; it is compiled only once.

    Its targets are probabilities for each class: a label is a one among zeros, a teacher's answer is what it says.
    """

    def __init__(self, size, **changes):
        import keras

        self.shape = {"size": size, **changes}
        self.model = image_cnn(**self.shape)
        schedule = keras.optimizers.schedules.CosineDecay(RATE, STEPS)
        loss = "categorical_crossentropy"
        self.model.compile(keras.optimizers.Adam(schedule), loss=loss, jit_compile=False)

    def learn(self, images, targets, seed):
        """Start from the weights of that seed and take 100 steps, whatever the number of images; the model."""
        self.model.set_weights(image_cnn(**self.shape, seed=seed).get_weights())
        for variable in self.model.optimizer.variables:
            variable.assign(variable * 0)
        picks = numpy.random.default_rng(seed).choice(len(images), STEPS * BATCH)
        self.model.fit(images[picks], targets[picks], batch_size=BATCH, shuffle=False, verbose=0)
        return self.model
