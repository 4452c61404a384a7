"""Options that have no meaning on SageMaker."""

from __future__ import annotations

# Options of other clouds, with what does the same here.
ELSEWHERE = {
    "project": "",
    "service_account": "--role",
    "pipeline": "",
    "nfs": "--channel NAME=efs://FILESYSTEM/PATH",
    "lustre": "--channel NAME=fsx://FILESYSTEM/PATH",
    "persistent_resource": "--keep-alive",
    "tensorboard": "",
    "network": "--subnet and --security-group",
    "restart": "--attempts",
}
