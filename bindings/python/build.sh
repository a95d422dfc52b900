#!/usr/bin/env bash
# Makes what is uploaded of the Python package, in the directory given: the source distribution and a
# wheel. It checks the wheel's tag, builds a wheel from the source distribution in a fresh virtual
# environment, as whoever has only that would, and opens a database with each.
#
# It needs a Rust toolchain, a C compiler and Python 3.11 or newer ($PYTHON, or python3), and installs
# maturin from the package index.
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
. ./wheel.sh

python=${PYTHON:-python3}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../target}/python"
work=$CARGO_TARGET_DIR/build
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
rm -f "$out"/esker-*.whl "$out"/esker-*.tar.gz

"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --disable-pip-version-check \
    "$(grep '^maturin==' requirements-test.txt)"
"$work/tools/bin/maturin" sdist --out "$out"
"$work/tools/bin/maturin" build --release --locked --strip --interpreter "$work/tools/bin/python" \
    --out "$out"

wheel=$(stable_wheel "$out")

# The licences are in both.
for archive in "$wheel" "$out"/esker-*.tar.gz; do
    case $archive in
    *.whl) names=$("$python" -m zipfile --list "$archive") ;;
    *) names=$(tar -tzf "$archive") ;;
    esac
    for name in LICENSE-MIT LICENSE-APACHE; do
        if [[ $names != *"$name"* ]]; then
            printf '%s has no %s\n' "$archive" "$name" >&2
            exit 1
        fi
    done
done

# With build isolation: the tools come by way of what pyproject.toml says.
"$python" -m venv "$work/fresh"
"$work/fresh/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$work" "$out"/esker-*.tar.gz
cd "$work"
for made in "$wheel" "$work"/esker-*.whl; do
    "$work/fresh/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --force-reinstall "$made"
    "$work/fresh/bin/python" - "$work/data" <<'END'
import esker, sys

with esker.DB(sys.argv[1], create_if_missing=True) as db:
    db.put(b"key", b"value")
    assert db.get(b"key") == b"value"
END
    printf 'installed and used: %s\n' "$(basename "$made")"
done
ls -l "$wheel" "$out"/esker-*.tar.gz
