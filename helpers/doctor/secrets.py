"""Passwords, tokens and keys in a command line or a log: blotted out before anything is written or shown.

A word too many costs nobody much, a key that is mailed around with a report does. What a training log is full of,
counts of tokens and names of tokenizers, stays. No pattern begins with an open repetition: a
line may be a megabyte long.
"""

import re
import shlex

BLOT = "***"
PASSWORD = r"(?:passw(?:or)?d|passphrase|secret|credential)s?"
KEY = r"(?:api|access|account|private|secret|signing|encryption|ssh|auth|client|master|storage|sas)[_-]?keys?"
MORE_OF_THE_NAME = r"(?:[_\d-][\w-]{0,30})?"
NOT_OF_A_TOKENIZER = "".join(
    rf"(?<!{word}[_-])"
    for word in "bos eos pad unk sep cls mask special next last per each start end stop max min num".split()
)
TOKEN = rf"{NOT_OF_A_TOKENIZER}token"
SECRET = rf"(?:{PASSWORD}{MORE_OF_THE_NAME}|{KEY}{MORE_OF_THE_NAME}|(?<![a-z])pwd)"
"""How the name of a secret ends; what comes before it, as in AWS_SECRET_ACCESS_KEY, does not matter."""
IS = r"""\\*["']?\s*(?:=>|[:=](?!>))\s*"""
NOT_SECRET = rf"""(?!["']?(?:none|null|true|false)\b|["']?{re.escape(BLOT)})"""
NOT_A_COUNT = r"(?!\d{1,5}(?:\.\d+)?(?![\w.+/=-]))"
NOT_A_FOLDER = r"""(?!["']?[/~])"""
VALUE = "|".join(
    (
        r'[brfu]{0,2}"(?:\\.|[^"\\\n])*"?',  # in quotes, which may be lost with the end of the line
        r"[brfu]{0,2}'(?:\\.|[^'\\\n])*'?",
        r'\\+"(?:(?!\\+").)*(?:\\+")?',  # in quotes inside a quoted text
        r"[\[({][^\])}\n]*[\])}]?",  # a pair of user and password
        r"\S+",
    )
)
LETTER_AND_DIGIT = r"(?=\S{0,60}\d)(?=\S{0,60}[A-Za-z])"
BEGIN, END = (rf"-----{side} [A-Z0-9 ]{{1,40}}-----" for side in ("BEGIN", "END"))
PEM_LINE = re.compile(r".{0,40}?[A-Za-z0-9+/=]{16,}\s*")
ISSUED = (
    rf"\b(?:(?:hf_|gh[pousr]_|npm_|dop_v1_|sk-|[sr]k_|SG\.|ya29\.){LETTER_AND_DIGIT}[\w.-]{{8,}}"
    r"|github_pat_\w{8,}|glpat-[\w-]{8,}|pypi-[\w-]{16,}|xox[abeoprs]-[\w-]{8,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{8,}|eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?)"
)
PATTERNS = tuple(
    (re.compile(pattern, flags), replacement)
    for pattern, flags, replacement in (
        # a key in PEM; one that was cut is seen to by `_without_cut_keys`
        (rf"{BEGIN}(?:(?!-----)[\s\S]){{0,20000}}{END}", 0, BLOT),
        # headers, to the end of the line or of the quotes around them
        (r"""((?:authorization|cookie)\\*["']?\s*[:=]\s*\\*["']?)[^"'\n]+""", re.I, rf"\1{BLOT}"),
        (r"""\b(bearer\s+)(?=[^\s"']*\d|(?-i:(?<=Bearer\s)))[^\s"']+""", re.I, rf"\1{BLOT}"),
        (r"\b(Basic\s+)(?=\S*[a-z0-9][A-Z]|\S*[\d=])[A-Za-z0-9+/]{8,}={0,2}", 0, rf"\1{BLOT}"),
        # name = value, "name": "value", --name value, and in plain words
        (rf"(pwd{IS}){NOT_SECRET}{NOT_A_FOLDER}(?:{VALUE})", re.I, rf"\1{BLOT}"),
        (rf"((?:{PASSWORD}|{KEY}){MORE_OF_THE_NAME}{IS}){NOT_SECRET}(?:{VALUE})", re.I, rf"\1{BLOT}"),
        (rf"({TOKEN}{IS}){NOT_SECRET}{NOT_A_COUNT}(?:{VALUE})", re.I, rf"\1{BLOT}"),
        (rf"\b([A-Z0-9_]{{0,60}}KEY=){NOT_SECRET}(?:{VALUE})", 0, rf"\1{BLOT}"),
        (rf"((?<!\S)--?[\w-]{{0,60}}(?:{SECRET}|{TOKEN})\s+){NOT_SECRET}(?:{VALUE})", re.I, rf"\1{BLOT}"),
        (
            rf"\b((?:{PASSWORD}|token|api[ _-]?key)\s+(?:is\s+)?){LETTER_AND_DIGIT}\S{{6,}}",
            re.I,
            rf"\1{BLOT}",
        ),
        # what programs take: mysql -pX, sshpass -p X, curl -u me:X, and -pX of any, unless it is a word or a port
        (r"(\b(?:mysql|mariadb)\w{0,20}\b[^\n]{0,500}?\s-p)[^\s'\"]+", 0, rf"\1{BLOT}"),
        (r"(\b(?:sshpass|docker login|podman login)\b[^\n]{0,500}?\s-p\s*)\S+", 0, rf"\1{BLOT}"),
        (r"((?<!\S)-p)(?![a-z_=-]+(?!\S))(?![\d.:/e-]+(?:tcp|udp)?(?!\S))[^\s'\"]{4,}", 0, rf"\1{BLOT}"),
        (r"((?<!\S)(?:-u|--user|--proxy-user)[= ]?[^\s:]{1,60}:)(?!\d+[;,)]?(?!\S))\S+", 0, rf"\1{BLOT}"),
        # addresses: https://me:X@host, whatever is in X, but not https://host:8080/@scope; ?sig=X
        (r"""(://[^\s/:"'<>]{0,200}:)(?!\d+/)[^\s"'<>]{1,300}@""", 0, rf"\1{BLOT}@"),
        (r"""(://)[^\s/:@"'<>]{16,300}@""", 0, rf"\1{BLOT}@"),
        (r"""([?&;](?:x-amz-)?(?:sig|signature|credential|code)=)[^\s&"']+""", re.I, rf"\1{BLOT}"),
        (ISSUED, 0, BLOT),
    )
)
FLAG = re.compile(rf"-{{1,2}}[\w-]*(?:{SECRET}|{TOKEN})", re.IGNORECASE)
ASSIGNMENT = re.compile(rf"([\w-]*(?:{SECRET}|{TOKEN}|KEY)=){NOT_SECRET}.*", re.IGNORECASE | re.DOTALL)


def without_secrets(text):
    """The text with passwords, tokens and keys blotted out.

    >>> without_secrets('python train.py --api-key=abc123 --epochs 3 # {"token": "x y"}, 512 tokens per second')
    'python train.py --api-key=*** --epochs 3 # {"token": ***}, 512 tokens per second'
    """
    for pattern, replacement in PATTERNS:
        text = pattern.sub(replacement, text)
    return _without_cut_keys(text) if "-----" in text else text


def _without_cut_keys(text):
    """Keys in PEM that lost their beginning or their end: the lines around the one that is left."""
    kept, inside = [], False
    for line in text.split("\n"):
        if re.search(END, line):
            while kept and any(map(PEM_LINE.fullmatch, kept[-2:])):  # the last of them may be short
                kept.pop()
        inside = bool(re.search(BEGIN, line)) or (inside and bool(PEM_LINE.fullmatch(line)))
        if inside and PEM_LINE.fullmatch(line):
            continue
        kept.append(re.sub(rf"{BEGIN}.*|{END}", BLOT, line))
    return "\n".join(kept)


def command_without_secrets(words):
    """A command line as one text; a secret that is a word of its own may have spaces in it.

    >>> command_without_secrets(["train", "--password", "open sesame", "--note=a b"])
    "train --password '***' '--note=a b'"
    """
    shown, before = [], ""
    for word in words:
        shown.append(BLOT if FLAG.fullmatch(before) else ASSIGNMENT.sub(rf"\1{BLOT}", word))
        before = word
    return without_secrets(shlex.join(shown))
