"""Options that have no meaning on Vertex AI."""

from __future__ import annotations

# Options of other clouds, with what does the same here.
ELSEWHERE = {
    "role": "--service-account EMAIL",
    "channel": "--data NAME=gs://BUCKET/PATH",
    "hyperparameter": "--param NAME=VALUE",
    "metric": "log_metrics in the cell",
    "subnet": "--network NAME",
    "security_group": "--network NAME",
    "encrypt": "",
    "isolate": "",
    "keep_alive": "--persistent-resource NAME",
    "attempts": "--restart",
}
