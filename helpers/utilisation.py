"""How busy the first NVIDIA GPU is over time, as its driver tells through NVML; no readings where there is none."""

from contextlib import suppress

INTERVAL = 0.1
"""Seconds between two readings: the driver itself averages over about as long."""


class Utilisation:
    """Readings of a GPU: `tick` it often, then `close` it; `readings` are pairs of seconds and a fraction."""

    def __init__(self):
        self.readings, self._next = [], 0.0
        self._nvml = None
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception:  # no NVML, or no driver
            return
        try:
            self._card = pynvml.nvmlDeviceGetHandleByIndex(0)
            self._nvml = pynvml
        except pynvml.NVMLError:
            pynvml.nvmlShutdown()

    def tick(self, seconds):
        """Take a reading if it is time for one."""
        if self._nvml is None or seconds < self._next:
            return
        self._next = seconds + INTERVAL
        with suppress(self._nvml.NVMLError):  # some cards do not tell
            busy = self._nvml.nvmlDeviceGetUtilizationRates(self._card).gpu / 100
            self.readings.append((seconds, busy))

    def close(self):
        """Let go of the driver."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None
