#!/usr/bin/env bash
# Builds the native library of the jar: esker-capi's static library, and the C files beside this script,
# linked into one shared library. Maven runs it: build.sh TARGET JAVA_HOME. All output goes below TARGET,
# except that cargo's goes to $CARGO_TARGET_DIR if that is set.
#
# It needs a Rust toolchain and a C compiler ($CC, or cc).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../../../.." && pwd)
target=$1
java=$2
cc=${CC:-cc}

# The names are those of NativeLibrary.java.
case $(uname -s) in
Linux) system=linux ending=so ;;
Darwin) system=macos ending=dylib ;;
*) system= ;;
esac
case $(uname -m) in
x86_64 | amd64) machine=x86_64 ;;
aarch64 | arm64) machine=aarch64 ;;
*) machine= ;;
esac
if [[ -z $system || -z $machine ]]; then
    printf 'Esker for Java has no native library for %s on %s\n' "$(uname -s)" "$(uname -m)" >&2
    exit 1
fi

mkdir -p "$target"
target=$(cd "$target" && pwd)
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$target/cargo}"
(cd "$root" && cargo build --quiet --release --locked --package esker-capi)
engine=$CARGO_TARGET_DIR/release/libesker_capi.a

objects=$target/native
place=$target/classes/dev/esker/native/$system-$machine
library=$place/libeskerjni.$ending
mkdir -p "$objects" "$place"

# A file that changed, or the engine: all is compiled again, which takes a few seconds.
newer=$(find "$here" "$engine" "$root/crates/esker-capi/include/esker.h" -newer "$library" 2>/dev/null || echo all)
if [[ -e $library && -z $newer ]]; then
    exit 0
fi

include=$java/include
if [[ ! -e $include/jni.h ]]; then
    printf 'there is no jni.h below %s: build with a JDK, not with a runtime alone\n' "$java" >&2
    exit 1
fi
for source in "$here"/*.c; do
    "$cc" -std=c11 -O2 -g1 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -Wno-unused-parameter \
        -D_POSIX_C_SOURCE=200809L -I"$include" -I"$include/linux" -I"$include/darwin" \
        -I"$root/crates/esker-capi/include" \
        -c "$source" -o "$objects/$(basename "$source" .c).o"
done

# Only what the virtual machine looks up is visible, so that nothing meets the symbols of another
# library in the process.
if [[ $system == linux ]]; then
    "$cc" -shared -o "$library" "$objects"/*.o "$engine" -Wl,--exclude-libs,ALL -Wl,--gc-sections \
        -Wl,-z,defs -Wl,-z,relro,-z,now -lgcc_s -lpthread -lm -ldl -lc
    strip --strip-debug "$library" 2>/dev/null || true
else
    "$cc" -dynamiclib -o "$library" "$objects"/*.o -Wl,-load_hidden,"$engine" -Wl,-dead_strip \
        -framework CoreFoundation -lpthread -lm
fi
