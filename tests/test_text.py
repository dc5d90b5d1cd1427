"""Text for people: short times, names of signals, harmless HTML, and tracebacks without long paths."""

import linecache
import sys
from types import SimpleNamespace

import pytest

from helpers.text import (
    Code,
    clean,
    escape,
    format_seconds,
    html_table,
    percent,
    readable,
    shorten,
    signal_name,
)


def test_seconds_are_short():
    assert [format_seconds(seconds) for seconds in (0.049, 0.5, 3.04, 12.3, 600.4)] == [
        "0.05 s",
        "0.5 s",
        "3 s",
        "12 s",
        "600 s",
    ]


def test_what_was_not_measured_is_a_dash():
    assert (percent(float("nan")), percent(None), format_seconds(None)) == ("-", "-", "-")
    assert percent(0.995) == "100 %"


def test_clean_text_is_one_line_that_can_be_encoded():
    assert clean("a\n\tb\x00\x1b[31m \ud800 日本語") == "a b[31m ? 日本語"
    assert clean(7) == "7"


def test_short_text_stays_and_long_text_ends_in_an_ellipsis():
    assert shorten("four", 4) == "four"
    assert shorten("abcdefgh", 5) == "abcd…"
    assert shorten("one two three", 9) == "one two…"


@pytest.mark.parametrize(
    ("exit_code", "name"),
    [(137, "SIGKILL"), (139, "SIGSEGV"), (-11, "SIGSEGV"), (0, None), (1, None), (128, None), (255, None)],
)
def test_a_signal_has_a_name_and_other_exit_codes_have_none(exit_code, name):
    assert signal_name(exit_code) == name


def test_a_table_escapes_all_that_it_shows():
    table = html_table(["<b>"], [[Code("a < b")], ['"quoted"'], [3]])
    assert "&lt;b&gt;" in table
    assert "<code>a &lt; b</code>" in table
    assert "&quot;quoted&quot;" in table
    assert table.count("<td") == 3
    assert escape("<\x00&>") == "&lt;&amp;&gt;"


def test_libraries_lose_the_path_to_them():
    text = '  File "/opt/env/lib/python3.11/site-packages/keras/src/trainer.py", line 3, in fit\n'
    assert readable(text) == '  File "keras/src/trainer.py", line 3, in fit\n'
    assert readable("/opt/lib/python3.12/warnings.py:7: UserWarning") == "warnings.py:7: UserWarning"
    assert readable('  File "/my/train.py", line 3, in main') == '  File "/my/train.py", line 3, in main'


def test_a_long_line_is_read_in_one_pass():
    text = "x" * 5_000_000 + "/lib/python3.11/site-packages/keras/a.py"
    assert readable(text).endswith("keras/a.py")


def test_a_frame_of_a_cell_has_its_number_and_its_source(monkeypatch):
    file = "/tmp/ipykernel_12/345.py"
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={file: 7}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(linecache.cache, file, (9, None, ["frame = load()\n"], file))
    text = f'  File "{file}", line 1, in <module>'
    assert readable(text) == '  File "cell 7", line 1, in <module>\n    frame = load()'
    assert readable(text.replace("345", "6")) == '  File "cell ?", line 1, in <module>'
