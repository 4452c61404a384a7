#!/bin/sh
# Makes sure that there is room for what the tests write: images of frameworks, and what is unpacked
# of them. Without it dozens of tests fail, each for a reason of its own.
set -eu

temporary="${TMPDIR:-/tmp}"
cache="${XDG_CACHE_HOME:-$HOME/.cache}"
written_gb=5    # to the folder for temporary files
cached_gb=9     # to the user's cache, once: base images, also unpacked, wheels, environments
installed_gb=6  # in the checkout, once: packages
[ ! -d "$cache/distrain-nb-dev/images" ] || cached_gb=0
[ ! -e .venv/.installed ] || installed_gb=0
mkdir -p "$cache"

filesystem_of() { df -Pk "$1" | awk 'NR == 2 { print $6 }'; }
free_gb() { df -Pk "$1" | awk 'NR == 2 { print int($4 / 1000000) }'; }

# Adds up what folders on one file system need.
needed_on() {
    total=0
    for pair in "$written_gb:$temporary" "$cached_gb:$cache" "$installed_gb:$PWD"; do
        [ "$(filesystem_of "${pair#*:}")" != "$1" ] || total=$((total + ${pair%%:*}))
    done
    echo "$total"
}

for folder in "$temporary" "$cache" "$PWD"; do
    needed=$(needed_on "$(filesystem_of "$folder")")
    [ "$(free_gb "$folder")" -lt "$needed" ] || continue
    echo "the tests need $needed GB in $folder, where $(free_gb "$folder") GB are free" >&2
    echo "what earlier runs left may go: $temporary/pytest-of-$(id -un), $cache/distrain-nb-dev" >&2
    exit 1
done
