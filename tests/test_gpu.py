"""The cards of the machine, read from a stand-in for NVML."""

import sys
from types import SimpleNamespace

import pytest

from helpers.gpu import INTERVAL, Gpu, Holdings, Utilisation, gpus, has_gpu, processes_on_the_gpu


class NvmlError(Exception):
    """Stands in for pynvml.NVMLError."""


def stand_in_for_nvml(**changes):
    calls = []
    working = {
        "NVMLError": NvmlError,
        "nvmlInit": lambda: calls.append("init"),
        "nvmlShutdown": lambda: calls.append("shutdown"),
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda card: [b"Old Card", "New Card"][card],
        "nvmlDeviceGetMemoryInfo": lambda card: SimpleNamespace(total=8 * 10**9, free=6 * 10**9),
        "nvmlDeviceGetUtilizationRates": lambda card: SimpleNamespace(gpu=40 + card, memory=7),
        "nvmlDeviceGetComputeRunningProcesses": lambda card: [
            SimpleNamespace(pid=10 + card, usedGpuMemory=100 * (card + 1)),
            SimpleNamespace(pid=77, usedGpuMemory=None),
        ],
        "calls": calls,
    }
    return SimpleNamespace(**working | changes)


def refuse(*arguments):
    raise NvmlError("not supported")


@pytest.fixture
def nvml(monkeypatch):
    stand_in = stand_in_for_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", stand_in)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return stand_in


def test_cards_are_found_and_the_driver_let_go(nvml):
    assert gpus() == [Gpu("Old Card", 8 * 10**9, 6 * 10**9), Gpu("New Card", 8 * 10**9, 6 * 10**9)]
    assert nvml.calls == ["init", "shutdown"]


def test_a_card_that_is_hidden_is_none(nvml, monkeypatch):
    assert has_gpu()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not has_gpu()


def test_who_holds_the_first_card(nvml):
    assert processes_on_the_gpu() == {10: 100, 77: None}
    assert nvml.calls == ["init", "shutdown"]


def test_what_a_family_holds_on_all_cards(nvml):
    holdings = Holdings()
    assert holdings.peak is None
    holdings.look(0.5, {10, 11, 77})
    holdings.look(0.6, {10})  # too soon
    holdings.close()
    assert (holdings.readings, holdings.peak) == ([(0.5, 300)], 300)


def test_how_busy_the_first_card_is_now_and_then(nvml):
    meter = Utilisation()
    for seconds in (0.0, 0.4 * INTERVAL, 1.1 * INTERVAL):
        meter.tick(seconds)
    meter.close()
    meter.close()
    assert meter.readings == [(0.0, 0.4), (1.1 * INTERVAL, 0.4)]
    assert nvml.calls == ["init", "shutdown"]


@pytest.mark.parametrize(
    "changes",
    [None, {"nvmlInit": refuse}, {"nvmlDeviceGetHandleByIndex": refuse}, {"nvmlDeviceGetCount": refuse}],
    ids=["no NVML", "no driver", "no card", "no count"],
)
def test_without_a_card_there_is_nothing_to_tell(monkeypatch, changes):
    monkeypatch.setitem(sys.modules, "pynvml", None if changes is None else stand_in_for_nvml(**changes))
    meter, holdings = Utilisation(), Holdings()
    meter.tick(1.0)
    holdings.look(1.0, {10})
    assert (gpus(), processes_on_the_gpu(), meter.readings, holdings.readings) == ([], {}, [], [])
    assert not has_gpu()


def test_a_card_that_does_not_tell_has_no_readings(monkeypatch):
    silent = {"nvmlDeviceGetUtilizationRates": refuse, "nvmlDeviceGetComputeRunningProcesses": refuse}
    monkeypatch.setitem(sys.modules, "pynvml", stand_in_for_nvml(**silent))
    meter, holdings = Utilisation(), Holdings()
    meter.tick(1.0)
    holdings.look(1.0, {10})
    assert (processes_on_the_gpu(), meter.readings, holdings.readings) == ({}, [], [])
