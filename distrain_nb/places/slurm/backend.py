"""Slurm: jobs of several nodes on a cluster that shares a file system with this machine."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from distrain_nb.backends.checks import Check, Health
from distrain_nb.backends.remote.cells import StayingBackend
from distrain_nb.backends.remote.service import Pace
from distrain_nb.config import home, path_named
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import Finding
from distrain_nb.layout import Layout
from distrain_nb.layout.choices import Choice
from distrain_nb.places.slurm.commands import ControllerUnreachable, Refused, UnverifiedServer
from distrain_nb.places.slurm.controller import controller, read_url, slurmrestd_settings
from distrain_nb.places.slurm.options import SlurmOptions
from distrain_nb.places.slurm.terms import READS
from distrain_nb.types import JsonObject

if TYPE_CHECKING:
    from distrain_nb.backends.remote.shared_folder import SharedSpec
    from distrain_nb.backends.settings import Settled
    from distrain_nb.places.slurm.options import SlurmJob
    from distrain_nb.places.slurm.plan import SlurmPlan, SlurmSpec
    from distrain_nb.places.slurm.service import SlurmService


class SlurmBackend(StayingBackend[SlurmOptions, "SlurmPlan"]):
    """Jobs on the nodes of a cluster that share a file system with this machine."""

    name, title, options, has_image = "slurm", "Slurm", SlurmOptions, False
    shares_carriers = True
    example: ClassVar = {"workers": "2"}
    reads = READS
    pace = Pace(look=0.5, quiet=0)  # the replicas close their logs before they say how they ended

    def machine(self, job: SlurmJob) -> Mapping[str, str]:
        """Return the folder of jobs, the notebook's Python, and the cluster's own description."""
        from distrain_nb.places.slurm import plan, sinfo

        options = job.options
        partitions, more = sinfo.cluster_report(options.url, options.token_file)
        facts = {
            plan.JOBS: str(home() / "slurm"),
            plan.PYTHON: sys.executable,
            plan.SINFO: partitions,
            plan.SCONTROL: more,
        }
        if options.url:
            facts |= self._server(options.url, options.token_file)
        else:
            facts[plan.COMMANDS] = shutil.which("sbatch", path=job.environ.get("PATH")) or ""
        return facts

    @staticmethod
    def _server(url: str, token_file: str) -> dict[str, str]:
        """Return the version of a slurmrestd's API, or why it refuses.

        Return nothing if it doesn't answer: jobs are submitted once it does.
        """
        from distrain_nb.places.slurm import plan

        try:
            return {plan.API: str(controller(url, token_file).version)}
        except (Refused, UnverifiedServer) as error:
            return {plan.TROUBLE: str(error)}
        except ControllerUnreachable:
            return {}

    def data(self, name: str, uri: str) -> str:
        """Return a path as the nodes have it, which may have disks of their own; otherwise the
        URI."""
        scheme, separator, rest = uri.partition("://")
        if separator and scheme != "file":
            return uri
        try:
            return str(path_named(rest if separator else uri).absolute())
        except OptionError as error:
            raise OptionError(f"--data {name}={error}") from None

    def plan(self, job: SlurmJob) -> SlurmPlan:
        """Return the script of a job. Raises OptionError for options that can't be read."""
        from distrain_nb.places.slurm.plan import plan

        return plan(job)

    def held(self, spec: SharedSpec) -> SlurmSpec:
        """Return the spec of a job that continues after a node or a replica has failed."""
        from distrain_nb.places.slurm.plan import SlurmSpec, held

        assert isinstance(spec, SlurmSpec)
        return held(spec)

    def offers(self, layout: Layout, path: str) -> Iterable[Choice]:
        """Return the GPUs that nodes have."""
        from distrain_nb.places.slurm import choices

        return choices.gres(layout, path)

    def about(self, layout: Layout, texts: Mapping[str, str]) -> Iterable[Finding]:
        from distrain_nb.places.slurm import validation

        return validation.about(layout, texts, self.machine)

    def checks(self) -> Iterator[Check]:
        path, url = shutil.which("sbatch"), slurmrestd_settings()[0]
        if path or url:
            yield Check("slurmrestd" if url else "commands", Health.GOOD, url or str(path))
        else:
            remedy = (
                "start the notebook where Slurm's commands are, such as on a login node, or keep "
                "the address of a slurmrestd: `%distrain config slurm_url=http://HOST:6820`"
            )
            yield Check("commands", Health.MISSING, "no sbatch on this machine's PATH", remedy)

    def access(self, settled: Settled) -> Iterator[Check]:  # noqa: ARG002
        """Yield what the controller says about its partitions."""
        from distrain_nb.places.slurm import sinfo

        url, token_file = slurmrestd_settings()
        if url:
            from distrain_nb.places.slurm.rest import Rest

            try:
                server = Rest(read_url(url), token_file)
                yield Check("login", Health.GOOD, server.login())
                yield Check("API", Health.GOOD, f"v0.0.{server.version}")
            except DistrainError as error:
                yield Check("login", Health.BROKEN, str(error), "see the page on clusters")
                return
        if url or shutil.which("sinfo"):
            partitions = sinfo.partitions()
            if not partitions:
                yield Check("cluster", Health.BROKEN, "sinfo gives no partitions", "see `sinfo`")
            for partition in partitions.values():
                yield Check(f"partition {partition.name}", Health.GOOD, str(partition))

    def service(
        self,
        spec: JsonObject,
        endpoints: Mapping[str, str],  # noqa: ARG002
        folder: Path,  # noqa: ARG002
    ) -> SlurmService:
        from distrain_nb.places.slurm.plan import SlurmSpec
        from distrain_nb.places.slurm.service import SlurmService

        return SlurmService(SlurmSpec.of(spec))
