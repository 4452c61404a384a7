"""What AWS itself says of the login, and of what it may do: for `%distrain doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from distrain_nb.backends.checks import Check, Health, allowed
from distrain_nb.errors import DistrainError
from distrain_nb.places.sagemaker.client import DENIED, code_of, plain_words
from distrain_nb.places.sagemaker.logs import GROUP
from distrain_nb.places.sagemaker.names import ACCOUNT
from distrain_nb.places.sagemaker.settings import login_of

if TYPE_CHECKING:
    from botocore.client import BaseClient

    from distrain_nb.backends.settings import Settled
    from distrain_nb.types import Value

CONNECT_S, READ_S = 3, 7

_UNREADABLE = (BotoCoreError, ResponseParserError)  # no answer, or one of somebody between

_POLICY = "have a policy added that allows it: docs/sagemaker.md lists what is needed"
_SENDING = ("sagemaker:CreateTrainingJob", "sagemaker:AddTags", "sagemaker:StopTrainingJob")


class _Call(NamedTuple):
    """A call that changes nothing, by the permission that it takes."""

    permission: str
    service: str
    operation: str
    parameters: dict[str, Value]


def access(settled: Settled) -> Iterator[Check]:
    """Yield whether the login works, and what it may not do of what jobs need."""
    region = str(settled["region"].value) if "region" in settled else ""
    if not region or not login_of(os.environ):
        return
    try:
        with plain_words("ask AWS who this is"):
            who = _client("sts", region).get_caller_identity()
    except DistrainError as error:
        yield Check("identity", Health.BROKEN, str(error), "aws configure, or aws sso login")
        return
    account, caller = str(who["Account"]), str(who["Arn"])
    yield Check("identity", Health.GOOD, f"{caller}: the login works")
    yield _called(region)
    bucket, role = (
        str(settled[name].value).replace(ACCOUNT, account) if name in settled else ""
        for name in ("bucket", "role")
    )
    yield _bucket(region, bucket.removeprefix("s3://").strip("/"), str(settled["bucket"].value))
    yield _simulated(region, caller, role)


def _called(region: str) -> Check:
    """Ask by calls for jobs that don't exist: a refused call isn't allowed, any other is."""
    calls = (
        _Call("sagemaker:DescribeTrainingJob", "sagemaker", "describe_training_job",
              {"TrainingJobName": "distrain-doctor"}),
        _Call("logs:FilterLogEvents", "logs", "filter_log_events",
              {"logGroupName": GROUP, "logStreamNamePrefix": "distrain-doctor", "limit": 1}),
        _Call("ecr:GetAuthorizationToken", "ecr", "get_authorization_token", {}),
    )  # fmt: skip
    lacking = []
    for call in calls:
        try:
            getattr(_client(call.service, region), call.operation)(**call.parameters)
        except ClientError as error:
            if code_of(error) in DENIED:
                lacking.append(call.permission)
        except _UNREADABLE as error:
            return Check("calls", Health.MISSING, f"{call.service} doesn't answer: {error}")
    return allowed("calls", lacking, _POLICY)


def _bucket(region: str, name: str, written: str) -> Check:
    try:
        _client("s3", region).head_bucket(Bucket=name)
    except ClientError as error:
        if code_of(error) in DENIED:
            return Check("bucket", Health.MISSING, f"{name}: s3:ListBucket is not allowed", _POLICY)
        if ACCOUNT in written:
            return Check("bucket", Health.GOOD, f"{name} is not there yet: the first job makes it")
        command = f"aws s3 mb s3://{name} --region {region}"
        return Check("bucket", Health.MISSING, f"{name} is not there", f"this makes it: !{command}")
    except _UNREADABLE as error:
        return Check("bucket", Health.MISSING, f"{name}: {error}")
    return Check("bucket", Health.GOOD, f"{name} is there")


def _simulated(region: str, caller: str, role: str) -> Check:
    """Ask IAM about the calls that would send a job, which can't be tried."""
    try:
        iam = _client("iam", region)
        source = _principal(iam, caller, role)
        results = iam.simulate_principal_policy(PolicySourceArn=source, ActionNames=list(_SENDING))[
            "EvaluationResults"
        ]
        results += iam.simulate_principal_policy(
            PolicySourceArn=source, ActionNames=["iam:PassRole"], ResourceArns=[role or "*"],
            ContextEntries=[{"ContextKeyName": "iam:PassedToService", "ContextKeyType": "string",
                             "ContextKeyValues": ["sagemaker.amazonaws.com"]}],
        )["EvaluationResults"]  # fmt: skip
    except (ClientError, *_UNREADABLE) as error:
        why = code_of(error) if isinstance(error, ClientError) else type(error).__name__
        note = f"can't be told before a first job: IAM gives no simulation ({why})"
        return Check("sending", Health.MISSING, note, "iam:SimulatePrincipalPolicy would tell")
    lacking = [one["EvalActionName"] for one in results if one["EvalDecision"] != "allowed"]
    return allowed("sending", lacking, _POLICY)


def _principal(iam: BaseClient, caller: str, role: str) -> str:
    """Return the user's or the role's own ARN, which a session's does not have whole."""
    if ":assumed-role/" not in caller:
        return caller
    name = caller.split("/")[1]
    if role.rpartition("/")[2] == name and role.startswith("arn:"):
        return role
    return str(iam.get_role(RoleName=name)["Role"]["Arn"])


def _client(service: str, region: str) -> BaseClient:
    from boto3 import Session

    limits = Config(
        region_name=region, connect_timeout=CONNECT_S, read_timeout=READ_S,
        retries={"total_max_attempts": 1},
    )  # fmt: skip
    return Session().client(service, config=limits)
