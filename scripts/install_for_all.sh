#!/bin/bash
# For administrators: distrain-nb for whoever starts JupyterLab, beside all that the image pins.
#
# SageMaker Studio: a lifecycle configuration for JupyterLab, of a domain or a user profile.
# Vertex AI Workbench: the post-startup script of an instance.
# `bash install_for_all.sh REQUIREMENT`: the address of a wheel. Where a script gets no arguments,
# write the address in place of distrain-nb below; the name alone needs an index that has it.
set -eu

python=$(command -v /opt/conda/bin/python || command -v python)
pinned=$(mktemp)
trap 'rm -f "$pinned"' EXIT
# What is installed stays as it is, or nothing is installed.
"$python" -m pip list --format=freeze --exclude distrain-nb > "$pinned"
"$python" -m pip install --quiet --constraint "$pinned" "${1:-distrain-nb}"

# A server that runs already learns of the extension when it starts again.
if command -v restart-jupyter-server > /dev/null; then
  restart-jupyter-server
elif systemctl is-active --quiet jupyter 2> /dev/null; then
  systemctl restart jupyter
fi
