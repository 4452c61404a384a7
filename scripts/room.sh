#!/bin/sh
# Makes sure that there is room for what the tests write: images of frameworks, and what is unpacked
# of them. Without it dozens of tests fail, each for a reason of its own.
set -eu

folder="${TMPDIR:-/tmp}"
written_gb=13    # to the folder for temporary files
installed_gb=6    # in the checkout, once: packages
[ ! -d .cache/images ] || installed_gb=0

filesystem_of() { df -Pk "$1" | awk 'NR == 2 { print $6 }'; }
free_gb() { df -Pk "$1" | awk 'NR == 2 { print int($4 / 1000000) }'; }

need() {
    [ "$(free_gb "$2")" -lt "$1" ] || return 0
    echo "the tests need $1 GB in $2, where $(free_gb "$2") GB are free" >&2
    echo "what earlier runs left may go: $folder/pytest-of-$(id -un)" >&2
    exit 1
}

if [ "$(filesystem_of "$folder")" = "$(filesystem_of .)" ]; then
    need $((written_gb + installed_gb)) "$folder"
else
    need "$written_gb" "$folder"
    need "$installed_gb" "$PWD"
fi
