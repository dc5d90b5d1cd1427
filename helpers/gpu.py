"""The graphics cards of this machine, as their driver describes them through NVML, and the virtual GPU's settings.

The only module that opens NVML. TensorFlow is never asked: it would start CUDA, and a fork after that breaks.
"""

import os
import time
from dataclasses import dataclass

MIB = 2**20
INTERVAL = 0.1
"""Seconds between two readings of how busy a card is: the driver itself averages over about as long."""
SECONDS_BETWEEN_OWNERS = 0.2
"""Between two looks at who holds how much."""


@dataclass(frozen=True)
class Gpu:
    """A graphics card as its driver describes it; memory in bytes."""

    name: str
    total: int
    free: int


class Driver:
    """NVML, opened until it is closed; without a driver there are no `cards`."""

    def __init__(self):
        self._nvml, self.cards = None, []
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception:  # no NVML, or no driver
            return
        self._nvml = pynvml
        self.cards = self.ask(_cards, otherwise=[])

    def ask(self, question, *arguments, otherwise=None):
        """`question(pynvml, *arguments)`, or `otherwise` where the driver does not tell."""
        if self._nvml is None:
            return otherwise
        try:
            return question(self._nvml, *arguments)
        except self._nvml.NVMLError:
            return otherwise

    def close(self):
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def _cards(nvml):
    return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]


def _describe(nvml, card):
    memory, name = nvml.nvmlDeviceGetMemoryInfo(card), nvml.nvmlDeviceGetName(card)
    return Gpu(name.decode() if isinstance(name, bytes) else name, memory.total, memory.free)


def _owners(nvml, card):
    return {process.pid: process.usedGpuMemory for process in nvml.nvmlDeviceGetComputeRunningProcesses(card)}


def _busy(nvml, card):
    return nvml.nvmlDeviceGetUtilizationRates(card).gpu / 100


def gpus():
    """The NVIDIA cards; none without a driver or without NVML."""
    with Driver() as driver:
        return driver.ask(lambda nvml: [_describe(nvml, card) for card in driver.cards], otherwise=[])


def has_gpu():
    """True if an NVIDIA GPU is there and not hidden."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1") and bool(gpus())


def processes_on_the_gpu():
    """{process: bytes that it holds on the first GPU}, as the driver tells; None where it may not tell the bytes."""
    with Driver() as driver:
        return driver.ask(_owners, driver.cards[0], otherwise={}) if driver.cards else {}


class Utilisation:
    """How busy the first card is: `tick` it often, then `close` it; `readings` are pairs of seconds and a fraction."""

    def __init__(self):
        self.readings, self._next = [], 0.0
        self._driver = Driver()

    def tick(self, seconds):
        """Take a reading if it is time for one."""
        if not self._driver.cards or seconds < self._next:
            return
        self._next = seconds + INTERVAL
        busy = self._driver.ask(_busy, self._driver.cards[0])
        if busy is not None:  # some cards do not tell
            self.readings.append((seconds, busy))

    def close(self):
        """Let go of the driver."""
        self._driver.close()


class Holdings:
    """What a family of processes holds on all cards: `look` often, then `close`; pairs of seconds and bytes."""

    def __init__(self):
        self.readings, self._next = [], 0.0
        self._driver = Driver()

    @property
    def peak(self):
        return max((size for _, size in self.readings), default=None)

    def look(self, seconds, pids):
        now = time.monotonic()
        if not self._driver.cards or now < self._next:
            return
        self._next = now + SECONDS_BETWEEN_OWNERS
        owners = [self._driver.ask(_owners, card) for card in self._driver.cards]
        if None not in owners:
            held = sum(size or 0 for card in owners for pid, size in card.items() if pid in pids)
            self.readings.append((seconds, held))

    def close(self):
        """Let go of the driver."""
        self._driver.close()


def virtual_environment(vram):
    """The variables that put TensorFlow's CPU device on the allocator of its GPUs, with `vram` bytes."""
    return {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(vram // MIB)}
