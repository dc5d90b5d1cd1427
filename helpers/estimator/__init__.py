"""The training memory of a Keras model before it runs."""
