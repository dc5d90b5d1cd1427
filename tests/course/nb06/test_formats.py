"""Reading formats and reporting on them: speeds, broken input, and the charts of all that."""

import os

import numpy as np
import pytest

from helpers import run
from helpers.course.nb06 import broken_input, readers, reading_speed
from helpers.course.nb06.formats import FormatFigures, formats_chart, formats_table, mapped_memory
from helpers.course.nb06.reading_speed import Speed
from helpers.course.records import example

MB = 10**6


@pytest.fixture
def array(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (200, 64, 64, 3), "uint8")
    np.save(tmp_path / "images.npy", images)
    return tmp_path / "images.npy"


def test_batches_cover_every_place_once_in_both_orders():
    for shuffled in (False, True):
        places = np.concatenate(readers.places_in_batches(100, shuffled, batch=16))
        assert sorted(places.tolist()) == list(range(100))
        assert (places.tolist() == list(range(100))) != shuffled


def test_a_reader_gives_the_same_images_from_memory_and_from_a_map(array):
    wanted = np.load(array)
    for mode in (None, "r"):
        found = np.concatenate(list(readers.npy_images(array, mmap_mode=mode)))
        assert (found == wanted).all()
    mixed = np.concatenate(list(readers.npy_images(array, shuffled=True)))
    assert (mixed != wanted).any()
    assert sorted(map(bytes, mixed)) == sorted(map(bytes, wanted))


def test_image_batches_scale_and_slice(array):
    def first_batch(path):
        images = np.load(path, mmap_mode="r")
        batches = readers.image_batches(images, np.arange(200), batch=16)
        some, labels = batches[12]
        return len(batches), some.dtype.name, float(np.abs(some - images[192:] / 255).max()), labels.tolist()

    assert run(first_batch, array).value == (13, "float32", pytest.approx(0, abs=1e-6), list(range(192, 200)))


def test_every_pass_is_timed_and_counts_the_bytes_it_asked_for(array):
    size = 64 * 64 * 3
    speeds = reading_speed.reading_speeds(readers.npy_images, array, samples=200)
    assert set(speeds) == {
        (order, cache) for order in ("sequential", "shuffled") for cache in ("cold", "warm")
    }
    assert all(speed.samples_per_second > 0 for speed in speeds.values())
    if speeds["sequential", "warm"].bytes_per_sample is not None:
        assert speeds["sequential", "warm"].bytes_per_sample == pytest.approx(size, rel=0.05)
        mapped = reading_speed.reading_speeds(readers.npy_images, array, "r", samples=200)
        assert mapped["sequential", "warm"].bytes_per_sample < 0.05 * size


def test_a_pass_ends_when_its_time_is_over(array):
    def endless(path, shuffled):
        while True:
            yield [0]

    speeds = reading_speed.reading_speeds(endless, array, samples=10**12, seconds=0.01)
    assert len(speeds) == 4


def test_losses_count_and_stop_at_their_limit():
    losses = broken_input.Losses(expected=1000, limit=0.01)
    losses.read(900)
    losses.skip("a", 10, "DataLossError")
    with pytest.raises(
        broken_input.TooMuchLost, match=r"over 1% of the input is lost; stopped\.\n900 of 1,000"
    ):
        losses.skip("b", 1, "ends early")
    assert losses.lost == 11


def test_a_whole_input_has_nothing_to_report():
    losses = broken_input.Losses(expected=3)
    losses.read(3)
    assert str(losses) == "3 of 3 read, 0 skipped"


def write_shards(paths):
    """Write ten records into each file; the bytes of one record there."""
    import tensorflow as tf

    for path in paths:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for _ in range(10):
                writer.write(example(1, "image", bytes(48)))
    return path.stat().st_size // 10


@pytest.fixture
def shards(tmp_path):
    """Three shards of ten records of 109 bytes or so, with the number of records that each should have."""
    paths = [tmp_path / f"shard-{number}" for number in range(3)]
    size = run(write_shards, paths).value
    return dict.fromkeys(paths, 10), size


def survivors(shards, limit):
    losses = broken_input.Losses(sum(shards.values()), limit)
    return sum(1 for _ in broken_input.surviving_records(shards, losses)), losses.skipped


@pytest.mark.parametrize(
    ("records", "extra", "reason"),
    [
        (7, 20, "DataLossError"),
        (7, 0, "ends early, without an error"),
        (0, 0, "ends early, without an error"),
    ],
)
def test_a_cut_shard_loses_its_end_and_no_other_record(shards, records, extra, reason):
    written, size = shards
    path = list(written)[1]
    os.truncate(path, records * size + extra)
    found, skipped = run(survivors, written, 1.0).value
    assert found == 20 + records
    assert skipped == [(path.name, 10 - records, reason)]


def test_a_flipped_bit_loses_the_rest_of_its_shard(shards):
    written, size = shards
    path = list(written)[1]
    broken_input.flipped_copy(path, path.parent, 4 * size + 30)
    found, skipped = run(survivors, written, 1.0).value
    assert (found, skipped) == (24, [(path.name, 6, "DataLossError")])


def test_too_much_lost_stops_the_reading(shards):
    written, size = shards
    os.truncate(next(iter(written)), 5 * size)
    trial = run(survivors, written, 0.1)
    assert trial.outcome == "error"
    assert "TooMuchLost: over 10% of the input is lost" in trial.error


def test_images_that_cannot_be_decoded_are_skipped_by_name(tmp_path):
    from PIL import Image

    for number in range(4):
        Image.new("RGB", (32, 32), (number, 0, 0)).save(tmp_path / f"{number}.jpg")
    (tmp_path / "1.jpg").write_text("<html>404 Not Found</html>")
    broken_input.cut_copy(tmp_path / "2.jpg", tmp_path, 300)

    def count(paths):
        losses = broken_input.Losses(len(paths), limit=1.0)
        return sum(1 for _ in broken_input.surviving_images(paths, losses)), losses.skipped

    reason = "InvalidArgumentError"
    assert run(count, sorted(tmp_path.glob("*.jpg"))).value == (
        2,
        [("1.jpg", 1, reason), ("2.jpg", 1, reason)],
    )


def figures(name, peak, cold, warm):
    speeds = {(order, "cold"): Speed(cold, None) for order in ("sequential", "shuffled")}
    speeds |= {(order, "warm"): Speed(warm, None) for order in ("sequential", "shuffled")}
    return FormatFigures(name, peak, 50 * MB, speeds)


def test_the_chart_of_formats_says_how_many_fit_and_how_far_apart_they_are():
    chart = formats_chart(
        [figures("load", 150 * MB, 9, 9e4), figures("map", 2 * MB, 2e4, 9e4), figures("bad", 3 * MB, 8, 9)],
        "100 MB",
    )
    assert "2 of 3 stay within 100 MB; shuffled, one is 10,000 times slower than another" in chart.alt
    assert "map: peak 2 MB, 50 MB on disk, 90,000 samples per second in order" in chart.alt
    assert chart.png()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="needs FormatFigures"):
        formats_chart([], "100 MB")


def test_the_table_of_formats_has_cold_and_warm_apart():
    table = formats_table([figures("map", 2 * MB, 12_345, 98_765)])
    assert table.iloc[0].tolist() == ["map", "2 MB", "50 MB", "12,345/s", "98,765/s", "12,345/s", "98,765/s"]


def test_the_chart_of_a_map_says_what_is_resident_and_what_is_the_jobs_own():
    touched = [(0, {"resident": 3 * MB, "own": 0}), (147 * MB, {"resident": 152 * MB, "own": 2 * MB})]
    assert mapped_memory(touched, "100 MB").alt.startswith(
        "Chart of memory against the bytes touched. 152 MB resident, 2 MB of it the job's own"
    )
