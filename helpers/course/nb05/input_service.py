"""The tf.data service on this machine: a dispatcher and workers, each a process of its own.

They are started before TensorFlow has run its first operation: a process can be forked off only until then. They belong
to the job, count in its budget and end with the service.
"""

import multiprocessing
import os
from contextlib import contextmanager

SECONDS_TO_START = 60


@contextmanager
def input_service(workers=2, cores=None):
    """Start a dispatcher and workers, on these cores if some are given; gives the address to send pipelines to."""
    started = []
    try:
        address = _start(started, _serve_dispatcher, cores)
        for _ in range(workers):
            _start(started, _serve_worker, cores, address)
        yield f"grpc://{address}"
    finally:
        for process in reversed(started):
            process.terminate()
            process.join()


def other_cores():
    """The cores that `helpers.course.nb05.feeding` leaves to the input; None where there is no choice."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return cores[1:] or None


def _start(started, serve, cores, *arguments):
    """Start one server and wait until it answers; returns its address."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(theirs, cores, *arguments), daemon=True)
    process.start()
    started.append(process)
    theirs.close()
    if not ours.poll(SECONDS_TO_START):
        raise TimeoutError(f"a server of tf.data did not start within {SECONDS_TO_START} s")
    try:
        return ours.recv()
    except EOFError:
        raise RuntimeError("a server of tf.data ended while it started; its output says why") from None


def _serve_dispatcher(pipe, cores):
    import tensorflow as tf

    _settle(cores)
    service = tf.data.experimental.service
    server = service.DispatchServer(service.DispatcherConfig(port=0))
    pipe.send(server.target.split("://")[1])
    server.join()


def _serve_worker(pipe, cores, dispatcher):
    import tensorflow as tf

    _settle(cores)
    service = tf.data.experimental.service
    server = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher))
    pipe.send(dispatcher)
    server.join()


def _settle(cores):
    if cores:
        os.sched_setaffinity(0, cores)
