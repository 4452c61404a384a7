"""SageMaker as far as a training job meets it, on this machine; S3, STS and logs are moto's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from distrain_nb.rehearsal.faults import Faults, FaultSyntax

SYNTAX = FaultSyntax(
    loss="spot",
    replica=r"algo-\d+",
    permission=r"(?:sagemaker|logs|s3|ecr|secretsmanager):[A-Za-z]+|iam:PassRole|sts:AssumeRole",
    allowed="spot=algo-N@SECONDSs, spot=algo-N@TEXT, quota=INSTANCE_TYPE, full=INSTANCE_TYPE, "
    "permission=SERVICE:ACTION (such as sagemaker:CreateTrainingJob, iam:PassRole, s3:GetObject), "
    "late=SECONDSs, busy=EVERY, lost=COUNT",
    machine=r"ml\.[\w.-]+",
)


def _lacks() -> Sequence[str]:
    from distrain_nb.rehearsal.needs import missing_requirements

    modules = {"moto.server": "moto[s3]", "flask_cors": "flask-cors"}
    return missing_requirements(modules, engine=True)


@contextmanager
def sagemaker(faults: str = "", buckets: Iterable[str] = ()) -> Iterator[Mapping[str, str]]:
    """Run SageMaker on this machine; give URLs of `sagemaker`, `s3`, `sts` and `logs`, and the
    address of the `registry`. Any credentials will do.

    `faults` is what `--rehearse` takes, such as `spot=algo-2@30s`; `buckets` are there from the
    start, with the files below `rehearsal/s3/BUCKET` of `DISTRAIN_HOME` as objects. Raises
    OptionError for faults that can't happen, DistrainError naming what this machine lacks.
    """
    from distrain_nb.program.progress import report

    report("loading AWS's libraries")
    chosen = Faults.parse(faults, SYNTAX)
    try:
        from distrain_nb.places.sagemaker.stand_in.services import stand_in
    except ModuleNotFoundError as missing:
        from distrain_nb.errors import DistrainError

        raise DistrainError(
            f"A rehearsal for SageMaker needs {missing.name}: "
            "`pip install 'distrain-nb[rehearsal]'`."
        ) from None
    with stand_in(chosen, buckets) as running:
        yield running.endpoints


# `backends.plugins.lacks_for_rehearsal` asks it, before anything of the rehearsal is started.
setattr(sagemaker, "lacks", _lacks)  # noqa: B010
