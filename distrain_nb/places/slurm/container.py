"""The container of a job on Slurm: the words between `srun` and a command that runs in an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError

if TYPE_CHECKING:
    from distrain_nb.places.slurm.options import SlurmJob

RUNNERS = ("apptainer", "pyxis")


def container_command(job: SlurmJob, folder: str, gres: str) -> list[str]:
    """Return the words between `srun` and a command that runs in the job's image.

    These are options of Pyxis, or Apptainer's own command. The container has the job's folder, the
    working folder and the folders of `--mount`. Raises OptionError.
    """
    image, runner = job.layout.image, job.options.container
    if runner not in RUNNERS:
        raise OptionError(f"invalid --container {runner!r}: expected {' or '.join(RUNNERS)}")
    if not image:
        return []
    folders = list(dict.fromkeys([folder, str(job.folder), *job.options.mount]))
    for path in folders:
        if not path.startswith("/") or set(path) & set(",:"):
            raise OptionError(f"invalid --mount {path!r}: expected a whole path without , and :")
    if runner == "pyxis":
        mounts = ",".join(f"{path}:{path}" for path in folders)
        return [
            f"--container-image={_for_enroot(image)}",
            f"--container-mounts={mounts}",
            f"--container-workdir={job.folder}",
        ]
    devices = [] if not gres.startswith("gpu") else ["--rocm" if ":mi" in gres else "--nv"]
    source = image if image.startswith(("/", ".")) or "://" in image else f"docker://{image}"
    command = ["apptainer", "exec", *devices, "--bind", ",".join(folders)]
    return [*command, "--pwd", str(job.folder), source]


def _for_enroot(image: str) -> str:
    """Return an image's name as Enroot expects it.

    A `#` ends the registry, which has a dot or a port, or is localhost.
    """
    registry, slash, rest = image.partition("/")
    named = "." in registry or ":" in registry or registry == "localhost"
    if image.startswith(("/", ".")) or "://" in image or "#" in image or not (slash and named):
        return image
    return f"{registry}#{rest}"
