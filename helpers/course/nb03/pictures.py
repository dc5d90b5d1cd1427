"""Pictures of a folder as a chart: a row of images for each name, small enough to see them at a glance."""

from matplotlib.image import imread

from helpers.charts import look
from helpers.text import clean

SIDE, GAP, NAMES, TOP, BOTTOM = 68, 8, 100, 48, 12


@look.in_style
def picture_rows(rows, title):
    """Draw the images at some paths in rows; `rows` maps the name of each row to its paths."""
    paths = {clean(name): list(some) for name, some in rows.items()}
    if not all(paths.values()) or not paths:
        raise ValueError('picture_rows needs paths of images: {"train": [path, ...]}')
    height = TOP + BOTTOM + (SIDE + GAP) * len(paths) - GAP
    chart = look.Chart("pictures in rows", height=height)
    for row, (name, some) in enumerate(paths.items()):
        bottom = height - TOP - SIDE - row * (SIDE + GAP)
        for column, path in enumerate(some):
            axes = chart.box(NAMES + column * (SIDE + GAP), bottom, SIDE, SIDE)
            axes.imshow(imread(path), interpolation="nearest")
            axes.set_axis_off()
        label = chart.text(16 / look.WIDTH, (bottom + SIDE / 2) / height, name, va="center", color=look.QUIET)
        look.fit(label, NAMES - 24)
    chart.heading(title)
    listed = ", ".join(f"{len(some)} of {name}" for name, some in paths.items())
    chart.alt = f"Rows of images: {listed}. {title}."
    return chart
