# For the scripts beside it: `. ./wheel.sh`.

# Prints the one wheel in a directory. It must be for all later versions of CPython: an installer knows
# that by the tag alone.
stable_wheel() {
    local wheel
    wheel=$(compgen -G "$1/esker-*.whl")
    case $wheel in
    *-cp311-abi3-*) printf '%s\n' "$wheel" ;;
    *)
        printf 'the wheel is not for the stable ABI of CPython 3.11: %s\n' "$wheel" >&2
        return 1
        ;;
    esac
}
