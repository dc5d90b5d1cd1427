"""What the reader sees of a job: its own words in whole lines, without TensorFlow's log and without long paths."""

import pytest

from helpers.jobs.live import SHOWN, Live


@pytest.fixture
def live():
    return Live("train", 600_000_000)


def test_lines_are_shown_whole_and_once(live, capsys):
    for piece in (b"one\ntw", b"o\nth", b"ree"):
        live("output", piece)
    assert capsys.readouterr().out == "one\ntwo\n"
    live.close()
    assert capsys.readouterr().out == "three\n"


def test_a_character_may_come_in_two_pieces(live, capsys):
    live("output", "grün".encode()[:3])
    live("output", "grün\n".encode()[3:])
    assert capsys.readouterr().out == "grün\n"


def test_tensorflows_own_log_is_not_shown(live, capsys):
    live(
        "output", b"W0000 00:00:1794798664.012673    8027 bfc_allocator.cc:502] Allocator ran out of memory\n"
    )
    live(
        "output",
        b"2026-01-01 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations\n",
    )
    live("output", b"Limit:                       143.00MiB\nLargestFreeBlock:                   0B\n")
    live("output", b"\t [[{{function_node __inference_one_step_on_data_1790}}{{node model/Relu}}]]\n")
    live("output", b"Hint: If you want to see a list of allocated tensors when OOM happens, add report_ten")
    live("output", b"sor_allocations_upon_oom to RunOptions.\nEpoch 1\n")
    assert capsys.readouterr().out == "Epoch 1\n"


def test_too_much_output_is_cut_with_a_word_about_it(live, capsys):
    for _ in range(30):
        live("output", b"x" * 9_999 + b"\n")
    out = capsys.readouterr().out
    assert len(out) < SHOWN + 20_000
    assert out.endswith("[more was printed; trial.log has it]\n")
