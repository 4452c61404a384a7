"""Why the certificate of a server can't be verified, in words."""

from __future__ import annotations

import ssl

_UNTRUSTED = "its issuer isn't trusted here; SSL_CERT_FILE can name a file with the issuer's"
# OpenSSL's codes.
_REASONS = {
    9: "it isn't valid yet",
    10: "it has expired",
    18: "it is self-signed; SSL_CERT_FILE can name a file with it",
    19: _UNTRUSTED,
    20: _UNTRUSTED,
    21: _UNTRUSTED,
    62: "it is for another host",
    64: "it is for another host",
}


def unverified(error: BaseException | None) -> str:
    """Return why a certificate can't be verified, of the error or of what led to it; empty where it
    isn't for that."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            why = _REASONS.get(error.verify_code, error.verify_message)
            return f"the server's certificate can't be verified: {why}"
        error = error.__cause__ or error.__context__
    return ""
