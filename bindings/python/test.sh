#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh virtual environment, and runs everything that the
# Python package is tested by. `test.sh ARGUMENTS` hands arguments to pytest.
#
# It needs a Rust toolchain, a C compiler and Python 3.11 or newer ($PYTHON, or python3), and
# installs what requirements-test.txt names from the package index.
set -euo pipefail
cd "$(dirname "$0")"
. ./wheel.sh

python=${PYTHON:-python3}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../target}/python"
work=$CARGO_TARGET_DIR/test
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
environment=$work/environment

"$python" -m venv "$environment"
python=$environment/bin/python
"$python" -m pip install --quiet --disable-pip-version-check -r requirements-test.txt

# The interpreter that the crate is compiled for is the one that it runs in.
export PYO3_PYTHON=$python
cargo fmt --check
cargo clippy --release --locked -- -D warnings
# By way of the source distribution, as whoever has only that would: what is missing in it shows.
"$environment/bin/maturin" sdist --out "$work"
mkdir "$work/source"
# With the time of now, not of the archive, by which cargo would take what changed for built.
tar -xzmf "$work"/esker-*.tar.gz -C "$work/source"
PATH=$environment/bin:$PATH MATURIN_PEP517_ARGS=--locked "$python" -m pip wheel --quiet \
    --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$work" \
    "$work"/source/esker-*
wheel=$(stable_wheel "$work")
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"

# From another directory, so that what is tested is the installed package and not the source.
here=$PWD
cd "$work"
"$python" -m pytest -c "$here/pyproject.toml" --rootdir "$here" "$here/tests" "$@"

# The examples in the documentation, of the installed package and of the guide.
"$python" -m pytest -c "$here/pyproject.toml" --rootdir "$here" --doctest-modules --quiet \
    --pyargs esker "$here/../../docs/python.md" --doctest-glob '*.md'

# The stubs: they agree with themselves, with the tests' idea of them, and with what is there.
"$python" -m mypy --config-file "$here/pyproject.toml" --package esker
"$python" -m mypy --config-file "$here/pyproject.toml" "$here/tests/typed.py"
"$python" -m mypy.stubtest esker --mypy-config-file "$here/pyproject.toml"

# plyvel's own tests, unchanged, with this package under plyvel's name. One of its databases has
# keys of up to 99,900 bytes, where Esker's limit is 65,535.
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary plyvel \
    --dest "$work" "plyvel==$("$python" -c 'import plyvel; print(plyvel.__version__)')"
tar -xzf "$work"/plyvel-*.tar.gz -C "$work"
mkdir "$work/unchanged" "$work/name"
cp "$work"/plyvel-*/test/test_plyvel.py "$work/unchanged"
printf '%s\n' 'from esker.plyvel import *' 'from esker.plyvel import __leveldb_version__' \
    >"$work/name/plyvel.py"
report=$(PYTHONPATH=$work/name "$python" -m pytest -p no:cacheprovider -q \
    --deselect test_plyvel.py::test_approximate_sizes "$work/unchanged" --rootdir "$work/unchanged")
printf '%s\n' "$report"
if [[ $report != *"53 passed, 1 deselected"* ]]; then
    printf 'plyvel has 54 tests, of which all but one must pass\n' >&2
    exit 1
fi
