"""The slow storage, the shards and the input service of notebook 05 deliver what they say, and end."""

import os
from pathlib import Path

import pytest

from helpers import run
from helpers.course.datasets import digits
from helpers.course.nb05.feeding import decode_record, decode_whole, device_core, train, vary
from helpers.course.nb05.input_service import input_service
from helpers.course.nb05.slow_storage import SlowStorage, time_reads, write_shards

PATHS = sorted(str(path) for path in (digits() / "train").glob("*/*.jpg"))[::240]


def read_all_ways(paths, folder):
    import tensorflow as tf

    files, storage = tf.data.Dataset.from_tensor_slices(paths), SlowStorage(0)
    shards = tf.data.Dataset.from_tensor_slices(write_shards(paths, folder, per_shard=4))
    images = shards.flat_map(storage.records).map(decode_whole)
    return {
        "read": [(jpeg, int(label)) for jpeg, label in files.map(storage.read).as_numpy_iterator()],
        "open": [(jpeg, int(label)) for jpeg, label in files.flat_map(storage.open).as_numpy_iterator()],
        "shards": len(shards),
        "labels": [int(label) for _, label in images.as_numpy_iterator()],
        "shapes": {image.shape for image, _ in images.as_numpy_iterator()},
    }


def test_files_and_shards_hold_the_same_images_with_their_labels(tmp_path):
    found = run(read_all_ways, PATHS, str(tmp_path)).value
    contents = [Path(path).read_bytes() for path in PATHS]
    labels = [int(Path(path).parent.name) for path in PATHS]
    assert found["read"] == found["open"] == list(zip(contents, labels, strict=True))
    assert (found["shards"], found["labels"], found["shapes"]) == (3, labels, {(128, 128, 3)})


def seconds_of(latency, ways):
    import time

    import tensorflow as tf

    files, storage = tf.data.Dataset.from_tensor_slices(PATHS[:4]), SlowStorage(latency)
    pipelines = {
        "map": files.map(storage.read),
        "interleave": files.interleave(storage.open, cycle_length=4, num_parallel_calls=4),
    }
    taken = {}
    for way in ways:
        began = time.monotonic()
        count = sum(1 for _ in pipelines[way])
        taken[way] = (time.monotonic() - began) / count
    return taken


def test_a_file_takes_its_latency_once_and_parallel_reads_share_it():
    taken = run(seconds_of, 0.3, ["map", "interleave"]).value
    assert taken["map"] >= 0.3
    assert taken["map"] < 0.55  # twice as long if the end of a one-file dataset were waited for
    assert taken["interleave"] < 0.7 * taken["map"]


def varied():
    import tensorflow as tf

    grey = tf.fill((8, 4, 4, 3), 0.5) + tf.reshape(tf.range(4.0) / 40, (1, 4, 1, 1))
    batch, _ = vary(grey, tf.range(8))
    one, _ = vary(grey[0], 0)
    return len(set(tf.reduce_mean(batch, (1, 2, 3)).numpy().tolist())), tuple(one.shape)


def test_each_image_of_a_batch_is_varied_on_its_own():
    assert run(varied).value == (8, (4, 4, 3))


def batches(shards, address=None):
    import tensorflow as tf

    service = tf.data.experimental.service
    records = tf.data.Dataset.from_tensor_slices(shards).repeat().flat_map(SlowStorage(0).records)
    data = records.map(decode_record).batch(8, drop_remainder=True)
    return data.apply(service.distribute(service.ShardingPolicy.OFF, address)) if address else data


def train_with_service(paths, folder):
    import psutil

    with input_service(workers=2) as address:
        shards = write_shards(paths, folder)
        servers = len(psutil.Process().children())
        feed = train(lambda: batches(shards, address), steps=4, prefetch=1)
    return servers, len(psutil.Process().children()), feed


def test_the_service_is_three_processes_feeds_the_model_and_ends(tmp_path, nothing_left):
    trial = run(train_with_service, PATHS, str(tmp_path))
    assert trial.outcome == "finished", trial.log
    servers, left, feed = trial.value
    assert (servers, left) == (3, 0)
    assert feed.rate > 0
    assert 0 <= feed.idle <= 1
    assert [stretch.name for stretch in trial.phases] == ["compile", "fit"]


def cores_of_threads():
    import threading

    before = os.sched_getaffinity(0)
    release = threading.Event()
    with device_core() as move_input:
        device = os.sched_getaffinity(0)
        thread = threading.Thread(target=release.wait)
        thread.start()
        move_input(0)
        found = os.sched_getaffinity(thread.native_id)
        release.set()
    return before, device, found, os.sched_getaffinity(0)


@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", lambda _: [])(0)) < 2, reason="needs two cores")
def test_the_device_has_a_core_that_the_input_leaves_to_it():
    before, device, moved, after = run(cores_of_threads).value
    assert len(device) == 1
    assert moved == before - device
    assert after == before


def test_reads_are_timed_cold_and_warm_and_nothing_is_lost(tmp_path):
    found = time_reads(tmp_path, count=20, size=3000)
    assert set(found) == {"cold", "warm"}
    assert all(seconds > 0 for seconds in found.values())
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 20 * 3000
