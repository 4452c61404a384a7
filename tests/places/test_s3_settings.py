"""An administrator's settings may lie in S3: by their address, or by that of their folder."""

from __future__ import annotations

from collections.abc import Mapping

import boto3
import pytest

from distrain_nb.errors import OptionError
from distrain_nb.places.sagemaker.sdk_config import sdk_settings

pytestmark = pytest.mark.brief

ROLE = "arn:aws:iam::123456789012:role/of-admin"
TEXT = f"SageMaker: {{TrainingJob: {{RoleArn: '{ROLE}'}}}}"


def test_settings_in_s3_are_read_by_the_sdk_s_variable(
    aws: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": aws["s3"], "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    s3 = boto3.Session().client("s3")
    s3.create_bucket(Bucket="of-admin")
    s3.put_object(Bucket="of-admin", Key="sdk/config.yaml", Body=TEXT.encode())
    for address in ("s3://of-admin/sdk/config.yaml", "s3://of-admin/sdk", "s3://of-admin/sdk/"):
        found = sdk_settings({"SAGEMAKER_ADMIN_CONFIG_OVERRIDE": address})
        assert found["role"] == (ROLE, address)
    with pytest.raises(OptionError, match=r"can't be read: s3://of-admin/other: .*NoSuchKey"):
        sdk_settings({"SAGEMAKER_ADMIN_CONFIG_OVERRIDE": "s3://of-admin/other"})
