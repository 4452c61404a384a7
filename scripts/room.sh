#!/bin/sh
# Makes sure that there is room for what the tests write: images of frameworks, and what is unpacked
# of them. Without it dozens of tests fail, each for a reason of its own.
set -eu

needed_gb=15
folder="${TMPDIR:-/tmp}"

free_kb=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
free_gb=$((free_kb / 1000000))
if [ "$free_gb" -lt "$needed_gb" ]; then
    echo "the tests need $needed_gb GB in $folder, where $free_gb GB are free" >&2
    echo "what earlier runs left there may go: $folder/pytest-of-$(id -un)" >&2
    exit 1
fi
