"""The utilisation of an NVIDIA GPU, read from a stand-in for NVML, and drawn over the strip of waiting."""

import sys
from types import SimpleNamespace

import numpy
import pytest

from helpers import trial
from helpers.utilisation import INTERVAL, Utilisation


class NvmlError(Exception):
    """Stands in for pynvml.NVMLError."""


def stand_in_for_nvml(**changes):
    calls = []
    working = {
        "NVMLError": NvmlError,
        "nvmlInit": lambda: calls.append("init"),
        "nvmlShutdown": lambda: calls.append("shutdown"),
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetUtilizationRates": lambda card: SimpleNamespace(gpu=40 + card, memory=7),
        "calls": calls,
    }
    return SimpleNamespace(**working | changes)


def refuse(*arguments):
    raise NvmlError("not supported")


def test_the_first_card_is_read_now_and_then_and_the_driver_let_go(monkeypatch):
    nvml = stand_in_for_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    meter = Utilisation()
    for seconds in (0.0, 0.4 * INTERVAL, 1.1 * INTERVAL):
        meter.tick(seconds)
    meter.close()
    meter.close()
    assert meter.readings == [(0.0, 0.4), (1.1 * INTERVAL, 0.4)]
    assert nvml.calls == ["init", "shutdown"]


@pytest.mark.parametrize(
    "nvml",
    [
        None,
        stand_in_for_nvml(nvmlInit=refuse),
        stand_in_for_nvml(nvmlDeviceGetHandleByIndex=refuse),
        stand_in_for_nvml(nvmlDeviceGetUtilizationRates=refuse),
    ],
    ids=["no NVML", "no driver", "no card", "a card that does not tell"],
)
def test_without_a_card_that_tells_there_are_no_readings(monkeypatch, nvml):
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    meter = Utilisation()
    meter.tick(1.0)
    meter.close()
    assert meter.readings == []


def facts(readings):
    curve = numpy.array([0.0, 0.1, 0.2, 0.3]), numpy.array([1.0, 2.0, 3.0, 4.0])
    return {"curve": curve, "vram": [], "idle": None, "waiting": [], "utilisation": readings}


def test_samples_have_the_newest_reading_and_no_column_without_a_card():
    samples = trial._samples(facts([(0.05, 0.4), (0.25, 0.9)]))
    assert samples["utilisation"].tolist() == pytest.approx([numpy.nan, 0.4, 0.4, 0.9], nan_ok=True)
    assert "utilisation" not in trial._samples(facts([]))
