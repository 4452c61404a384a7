"""Calls of AWS's API: clients for the cloud or a stand-in, retries, errors in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from distrain_nb.backends.remote.service import Denied
from distrain_nb.backends.remote.uploading import AT_ONCE
from distrain_nb.errors import DistrainError

if TYPE_CHECKING:
    from botocore.client import BaseClient

# Standard mode repeats what may pass, with exponential pauses and jitter.
ATTEMPTS, CONNECT_S, READ_S = 8, 10, 60

# What a rehearsal's services are asked with.
_NOBODY = {"aws_access_key_id": "rehearsal", "aws_secret_access_key": "rehearsal"}

THROTTLED = ("ThrottlingException", "Throttling", "TooManyRequestsException", "SlowDown")
DENIED = ("AccessDeniedException", "AccessDenied", "UnauthorizedOperation", "403")
_STALE = (
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
    "InvalidAccessKeyId",
)
_HINTS = {
    "ResourceLimitExceeded": "Ask for more in the console's Service Quotas, or take fewer or other "
    "instances.",
    "NoSuchBucket": "Make it, or name another one with --bucket.",
    **dict.fromkeys(_STALE, "Log in again: aws configure, or aws sso login."),
    **dict.fromkeys(THROTTLED, "AWS limits how often it may be asked; try again later."),
}
_LOG_IN = "Log in: aws configure, or aws sso login."
_LOGGED_OUT = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.TokenRetrievalError,
    exceptions.SSOError,
    exceptions.ProfileNotFound,
)
_REFUSED = re.compile(
    r"User: (?:\S+:assumed-role/(?P<role>[^/\s]+)\S*|\S+:(?P<who>\S+)) is not authorized to "
    r"perform: (?P<action>[\w:*-]+)(?: on resource: (?P<what>\S+))?"
)


def client(service: str, region: str, endpoints: Mapping[str, str]) -> BaseClient:
    """Return a client of a service of AWS, or of the rehearsal's stand-in for it."""
    retries = {"mode": "standard", "total_max_attempts": ATTEMPTS}
    config = Config(
        region_name=region,
        retries=retries,
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        max_pool_connections=AT_ONCE,
    )
    # A session of its own: boto3's default one keeps the login that it found first.
    session = boto3.Session()
    if service not in endpoints:
        return session.client(service, config=config)
    here = config.merge(Config(s3={"addressing_style": "path"}, proxies={}))
    return session.client(service, endpoint_url=endpoints[service], config=here, **_NOBODY)


@contextmanager
def plain_words(doing: str) -> Iterator[None]:
    """Errors of the API and of logging in become a DistrainError that says what to do, a Denied
    where a permission is missing."""
    try:
        yield
    except ClientError as error:
        kind = Denied if code_of(error) in DENIED else DistrainError
        raise kind(f"Can't {doing}: {_message(error)}") from error
    except _LOGGED_OUT as error:
        raise DistrainError(f"Can't {doing}: {error} {_LOG_IN}") from error
    except (exceptions.HTTPClientError, exceptions.EndpointConnectionError) as error:
        raise DistrainError(f"Can't {doing}: AWS doesn't answer: {error}") from error
    except ResponseParserError as error:
        raise DistrainError(
            f"Can't {doing}: the answer is not from AWS, but perhaps from a proxy: "
            f"{str(error)[:200]}"
        ) from error
    except exceptions.BotoCoreError as error:
        raise DistrainError(f"Can't {doing}: {error}") from error


def code_of(error: ClientError) -> str:
    """Return the service's name for what is wrong."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _message(error: ClientError) -> str:
    code = code_of(error)
    message = str(error.response.get("Error", {}).get("Message", "")) or code
    if code in DENIED:
        return _denied(message, error.operation_name)
    return f"{message} {_HINTS.get(code, '')}".strip()


def _denied(message: str, operation: str) -> str:
    """Name the identity and the missing permission, as far as the service tells."""
    match = _REFUSED.search(message)
    if match is None:
        sentence = f"{message}: {operation} is not allowed"
    else:
        who = f"the role {match['role']}" if match["role"] else match["who"].replace("/", " ", 1)
        on = f" on {match['what']}" if match["what"] else ""
        sentence = f"{who} lacks the permission {match['action']}{on}"
    return (
        f"{sentence}. Have a policy added that allows it: docs/sagemaker.md lists what is needed."
    )
