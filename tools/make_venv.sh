#!/bin/sh
# Makes a virtual environment from requirements.lock, with uv where it is on the PATH and with pip elsewhere.
# Usage: make_venv.sh FOLDER STAMP. The stamp is written last: an interrupted install leaves none.
# PYTHON names the interpreter to use; without it the first usable one is taken.
set -eu
venv=$1
stamp=$2

usable() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

choose_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
        if usable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "There is no usable Python 3.10 to 3.13 (tried: ${PYTHON:-python3, python3.13 down to python3.10})." >&2
    echo "Install one, or name one: make lab PYTHON=/path/to/python3.12" >&2
    return 1
}

# An environment of another Python version cannot be topped up; it is made afresh.
make_environment() {
    version='import sys; print(sys.version)'
    if [ "$("$venv/bin/python" -c "$version" 2>/dev/null || true)" != "$("$python" -c "$version")" ]; then
        set -- --clear "$@"
    fi
    "$python" -m venv "$@" "$venv"
}

# Some packages come as source only and are built with setuptools. It goes in first and hashed like the others,
# so that no build fetches anything that the lock does not name.
install() {
    awk '/^setuptools==/ { on = 1 } on { print } on && !/\\$/ { exit }' requirements.lock >"$venv/setuptools.lock"
    "$@" --require-hashes -r "$venv/setuptools.lock"
    "$@" --require-hashes --no-build-isolation -r requirements.lock
    "$@" --no-deps --no-build-isolation -e .
}

python=$(choose_python)
rm -f "$venv"/installed-*
if command -v uv >/dev/null 2>&1; then
    echo "Installing into $venv with uv and $("$python" --version); this takes some seconds."
    make_environment --without-pip
    install uv pip install --python "$venv/bin/python"
else
    echo "Installing into $venv with pip and $("$python" --version); this takes a minute or two."
    make_environment
    install "$venv/bin/python" -m pip install --disable-pip-version-check
fi
touch "$stamp"
