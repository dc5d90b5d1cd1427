"""No secret of the log, the command line or the program reaches the report, its chart or the terminal, and what a
training log is full of is not taken for one."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctored import PYTHON, doctor, script
from helpers.doctor.secrets import BLOT, command_without_secrets, without_secrets

SECRET = "hunter2Xy"
BODY = f"{SECRET}{'A' * 55}\n{SECRET}{'B' * 55}\n{SECRET}="
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"
SAID = [
    f"Authorization: Bearer {SECRET}.{SECRET}",
    f"calling with Bearer {SECRET}",
    "Authorization: Basic bWU6aHVudGVyMlh5",
    f"proxy-authorization: Token {SECRET}",
    f"Cookie: session={SECRET}; other={SECRET}",
    f"x-api-key: {SECRET}",
    f'{{"epochs": 3, "token": "{SECRET}"}}',
    f'{{"token":"{SECRET} {SECRET}","epochs":3}}',
    f"config: {{'hf_token': '{SECRET}'}}",
    f'body: "{{\\"token\\": \\"{SECRET}\\"}}"',
    f"Server=db;uid=sa;pwd={SECRET};",
    f"pwd: {SECRET}",
    f"private_key={SECRET}",
    f"private_key: '{SECRET} {SECRET}'",
    f"privateKey: {SECRET}",
    PEM,
    PEM.replace("\n", "\\n"),
    PEM.replace("RSA PRIVATE", "OPENSSH PRIVATE"),
    "\n".join(f"INFO 12:00 {line}" for line in PEM.splitlines()),
    PEM.partition("\n")[2],
    PEM.rpartition("\n")[0].rpartition("\n")[0],
    f"+ mysql -uroot -p{SECRET} shop",
    "+ mysqldump --host db -phunter shop".replace("hunter", SECRET.lower()),
    f"-p{SECRET}",
    f"sshpass -p {SECRET} ssh me@host",
    f"curl -u me:{SECRET} https://host",
    f"postgres://me:{SECRET}@host/db",
    f"postgres://me:p@ss/{SECRET}@host/db",
    f"redis://:{SECRET}@host",
    f"smtp://me@example.org:{SECRET}@host",
    f"https://{SECRET}{SECRET}@github.com/me/x",
    f"https://host/blob?sig={SECRET}&se=1",
    f"AWS_SECRET_ACCESS_KEY={SECRET}/{SECRET}",
    f'aws_secret_access_key = "{SECRET}"',
    f"aws_session_token = {SECRET}",
    f"AccountName=me;AccountKey={SECRET}==",
    f"KEY={SECRET}",
    f"export DEPLOY_KEY={SECRET}",
    f"WANDB_API_KEY: {SECRET}",
    f"clientSecret => {SECRET}",
    f"--password {SECRET}",
    f"--password={SECRET}",
    f"--hf-token '{SECRET} {SECRET}'",
    f"login with password {SECRET}",
    f"auth_token=('me', '{SECRET}')",
    f'password = "{SECRET}',
    f"hf_{SECRET}{SECRET}",
    f"ghp_{SECRET}{SECRET}",
    f"sk-{SECRET}{SECRET}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{SECRET}",
]
ORDINARY = [
    "Epoch 1/9 - 3s 12ms/step - loss: 0.51 - accuracy: 0.87",
    "tokens per second: 512, token count: 3, total_tokens=9, tokens=512, tokens/s: 5.5",
    "max_tokens=7, num_tokens: 5, max_token=7, token: 3, pad_token=<pad>, eos_token: </s>, unk_token='[UNK]'",
    "token_type_ids=[0, 0, 1], tokenizer=bert-base, Tokenizer(num_words=100)",
    "use_auth_token=True password=None secret: null",
    "PWD=/home/me OLDPWD=/srv",
    "the password was wrong; the secret of success; a bearer of bad news; Basic training",
    "serve -p 8080; make -p2; docker run -p 8080:80 -p127.0.0.1:80:80/tcp -u 1000:1000; mkdir -pv x",
    "ffmpeg -pix_fmt yuv420p -preset fast",
    "pulled http://registry:4873/@scope/package from http://host:8080/x",
    "git@github.com:me/x.git, me@example.org",
    "sort_key=name key=3 monkey=4 KeyError: 'key'",
    "secretary: Bob, hf_home_directory, sk-learn-contrib, passes=4, compass: north",
    "ResourceExhaustedError: OOM when allocating tensor with shape[256,64,112,112] and type float",
    '  File "train.py", line 7, in <module>',
]


@pytest.mark.parametrize("text", SAID)
def test_a_secret_is_blotted_out(text):
    shown = without_secrets(f"before\n{text}\nafter")
    assert SECRET not in shown
    assert SECRET.lower() not in shown
    assert "bWU6" not in shown
    assert BLOT in shown
    assert shown.startswith("before")
    assert shown.endswith("after")


@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_no_secret_stays(text):
    assert without_secrets(text) == text


ANY_SECRET = st.text(string.ascii_letters + string.digits + "!#$%*+-./:;=?@^_~", min_size=8, max_size=40).map(
    lambda text: f"Xq7{text}"
)
PLACES = [
    "--password {}",
    "--api-key={}",
    '{{"token": "{}", "epochs": 3}}',
    "{{'client_secret': '{}'}}",
    "DB_PASSWORD={}",
    "password: {} ",
    "Authorization: Bearer {}",
    "postgres://me:{}@host/db",
    "mysql -uroot -p{} shop",
    "private_key={}",
]


@given(
    secret=ANY_SECRET, place=st.sampled_from(PLACES), before=st.text(max_size=20), after=st.text(max_size=20)
)
def test_no_secret_is_left_wherever_it_stands(secret, place, before, after):
    shown = without_secrets(f"{before}\n{place.format(secret)}\n{after}")
    assert secret not in shown
    assert secret[:6] not in shown.replace(before, "").replace(after, "") or secret[:6] in before + after


@given(secret=st.text(min_size=8, max_size=30).map(lambda text: f"Xq7 '\"{text}"))
def test_a_word_of_the_command_is_blotted_out_whole(secret):
    for words in (["--password", secret], [f"--password={secret}"], [f"API_KEY={secret}"]):
        assert "Xq7" not in command_without_secrets(["train", *words, "--epochs", "3"])


@given(st.text(max_size=200), st.sampled_from(SAID))
def test_twice_is_as_once(text, said):
    once = without_secrets(f"{text}\n{said}")
    assert without_secrets(once) == once


@pytest.mark.parametrize(
    "piece",
    ["a", "A_KEY", "token", "mysql -", "-----BEGIN A-----\n", "ABCDEFGHABCDEFGH\n", "://a:", '"', "\\"],
)
def test_a_log_in_one_line_takes_a_time_that_grows_as_it_does(piece):
    import time

    def seconds(size):
        began = time.process_time()
        without_secrets(piece * (size // len(piece)))
        return time.process_time() - began

    assert seconds(80_000) < 20 * max(seconds(10_000), 0.005)


def test_nothing_secret_is_in_the_files_or_on_the_terminal(tmp_path):
    lines = "\n".join(text for text in SAID)
    program = f"import time\nprint({lines!r}, flush=True)\ntime.sleep(0.5)\n"
    program += f"password = '{SECRET}'; rows = [bytes(10**8)]; raise MemoryError('token={SECRET}')\n"
    words = ("--password", f"{SECRET} {SECRET}", f"--url=postgres://me:p@{SECRET}@host")
    done = doctor(tmp_path, "--", PYTHON, script(tmp_path, program), *words)
    said_by_doctor = done.stderr.decode().partition("\ndoctor: ")[2]
    page, text = ((tmp_path / f"oom-report.{kind}").read_text() for kind in ("html", "txt"))
    for shown in (said_by_doctor, page, text):
        assert "host-ram" in shown
        assert SECRET not in shown
        assert "bWU6" not in shown


def test_the_chart_has_no_secret_in_its_label(tmp_path):
    seen = tmp_path / "label"
    program = f"""
import sys
import helpers.charts.timeline as timeline
from helpers.__main__ import main
def plot(trial):
    open({str(seen)!r}, "w").write(repr((trial.label, trial.log, trial.lines)))
    raise ValueError
timeline.plot = plot
job = "import time; print('token={SECRET}'); time.sleep(0.5); raise MemoryError"
sys.exit(main(["doctor", "--", sys.executable, "-c", job, "--api-key", "{SECRET}"]))
"""
    import subprocess

    from doctored import environment

    subprocess.run([PYTHON, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, check=False)
    assert "--api-key" in seen.read_text()
    assert SECRET not in seen.read_text()
