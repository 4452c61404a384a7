"""Tokens that begin as their issuers have them begin.

Prefixes, alphabets and lengths are those that the issuers document, or give out. Most of a text is
words too short for a token, so the prefixes are looked for in the long ones alone, and the whole
form only of a prefix that is there.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

_HEX, _WORD, _URL, _64 = "[0-9a-f]", "[A-Za-z0-9]", "[A-Za-z0-9_-]", "[A-Za-z0-9+/=_-]"

# Kind, prefixes, and what follows one; a fourth text is what comes before, of one length.
_TOKENS: tuple[tuple[str, ...], ...] = (
    # models and experiments
    ("a Hugging Face token", "hf_ api_org_", f"{_WORD}{{30,}}"),
    ("an OpenAI key", "sk-proj- sk-svcacct- sk-admin- sk-None-", f"{_URL}{{20,}}"),
    ("an OpenAI key", "sk-", f"{_WORD}{{32,}}"),
    ("an Anthropic key", "sk-ant-", f"[a-z]+[0-9]+-{_URL}{{20,}}"),
    ("an OpenRouter key", "sk-or-v1-", f"{_HEX}{{40,}}"),
    ("a Groq key", "gsk_", f"{_WORD}{{40,}}"),
    ("an xAI key", "xai-", f"{_WORD}{{60,}}"),
    ("a Perplexity key", "pplx-", f"{_WORD}{{40,}}"),
    ("a Replicate token", "r8_", f"{_WORD}{{37}}"),
    ("a Together key", "tgp_v1_", f"{_URL}{{40,}}"),
    ("an NVIDIA key", "nvapi-", f"{_URL}{{50,}}"),
    ("a LangSmith key", "lsv2_pt_ lsv2_sk_", f"{_HEX}{{32}}_{_HEX}{{10}}"),
    ("a Langfuse key", "sk-lf-", f"{_HEX}{{8}}-[0-9a-f-]{{20,}}"),
    ("a Pinecone key", "pcsk_", "[A-Za-z0-9_]{50,}"),
    ("a Weights & Biases key", "wandb_v1_", "[A-Za-z0-9_]{40,}"),
    ("a Neptune token", "eyJhcGlfYWRkcmVzcyI6", f"{_64}{{40,}}"),
    ("a Prefect key", "pnu_ pnb_", f"{_WORD}{{36}}"),
    ("a Fireworks key", "fw_", f"{_WORD}{{22,}}"),
    ("a Cerebras key", "csk-", "[a-z0-9]{40,}"),
    ("a Tavily key", "tvly-", "[A-Za-z0-9-]{28,}"),
    ("a Firecrawl key", "fc-", f"{_HEX}{{32}}"),
    ("a Jina key", "jina_", f"{_WORD}{{50,}}"),
    ("a RunPod key", "rpa_", "[A-Z0-9]{40,}"),
    ("an ElevenLabs key", "sk_", f"{_HEX}{{48}}"),
    ("a Kaggle token", "KGAT_", f"{_HEX}{{32}}"),
    ("a DeepL key", ":fx", "(?![A-Za-z0-9])", f"{_HEX}{{8}}-[0-9a-f-]{{27}}"),
    # clouds
    ("a Google API key", "AIza", f"{_URL}{{35}}"),
    ("a Google access token", "ya29.", f"{_URL}{{20,}}"),
    ("a Google refresh token", "1//0", f"{_URL}{{50,}}"),
    ("an Azure AI key", "JQQJ99", f"{_WORD}{{24,}}", f"{_WORD}{{52}}"),
    ("a Google client secret", "GOCSPX-", f"{_URL}{{28}}"),
    ("an AWS access key", "AKIA ASIA ABIA ACCA", "[A-Z2-7]{16}"),
    ("an Amazon Bedrock key", "ABSK", "[A-Za-z0-9+/]{90,}={0,2}"),
    ("an Azure storage key", "AccountKey=", "[A-Za-z0-9+/]{86}=="),
    ("an Azure access key", "SharedAccessKey=", "[A-Za-z0-9+/]{43}="),
    ("an Azure client secret", "Q~", "[A-Za-z0-9_~.-]{31,34}", "[A-Za-z0-9_~.]{3}[0-9]"),
    ("an Alibaba Cloud key", "LTAI", f"{_WORD}{{16,20}}"),
    ("a Tencent Cloud key", "AKID", f"{_WORD}{{32}}"),
    ("a DigitalOcean token", "doo_v1_ dop_v1_ dor_v1_ dot_v1_", f"{_HEX}{{64}}"),
    ("a Databricks token", "dapi", f"{_HEX}{{32}}"),
    ("a dbt token", "dbtu_ dbtc_", f"{_URL}{{36,}}"),
    ("a Heroku key", "HRKU-AA", f"{_URL}{{58}}"),
    ("a Netlify token", "nfp_", f"{_WORD}{{36,}}"),
    ("a Supabase token", "sbp_", f"{_HEX}{{40}}"),
    ("a Supabase key", "sb_secret_", f"{_URL}{{30,}}"),
    ("a PlanetScale token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "[A-Za-z0-9_=.-]{32,}"),
    ("a Fly.io token", "fm2_", f"{_64}{{100,}}"),
    ("a Vault token", "hvs. hvb. hvr.", f"{_URL}{{24,}}"),
    ("a Terraform token", ".atlasv1.", f"{_URL}{{60,}}", f"{_WORD}{{14}}"),
    ("a Pulumi token", "pul-", f"{_HEX}{{40}}"),
    ("a Doppler token", "dp.pt. dp.st. dp.ct. dp.sa.", "[A-Za-z0-9.]{40,}"),
    ("a 1Password token", "ops_eyJ", f"{_64}{{100,}}"),
    ("an age key", "AGE-SECRET-KEY-1", "[0-9A-Z]{58}"),
    ("a Tailscale key", "tskey-auth- tskey-api- tskey-client-", "[A-Za-z0-9-]{20,}"),
    # code, packages, builds
    ("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", f"{_WORD}{{36,}}"),
    ("a GitHub token", "github_pat_", "[A-Za-z0-9_]{22,}"),
    ("a GitLab token", "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- gloas-", f"{_URL}{{20,}}"),
    ("a Bitbucket password", "ATBB", f"{_WORD}{{28,}}"),
    ("a Bitbucket token", "ATCTT3", f"{_URL}{{100,}}"),
    ("an npm token", "npm_", f"{_WORD}{{36}}"),
    ("a PyPI token", "pypi-AgE", f"{_URL}{{50,}}"),
    ("a RubyGems key", "rubygems_", f"{_HEX}{{48}}"),
    ("a Docker Hub token", "dckr_pat_ dckr_oat_", f"{_URL}{{27}}"),
    ("a CircleCI token", "CCIPAT_", f"{_WORD}{{22}}_{_HEX}{{40}}"),
    ("a Buildkite token", "bkua_", f"{_HEX}{{40}}"),
    ("a SonarQube token", "squ_ sqp_ sqa_", f"{_HEX}{{40}}"),
    ("an Artifactory key", "AKCp", f"{_WORD}{{60,}}"),
    ("a Sentry token", "sntryu_", f"{_HEX}{{64}}"),
    ("a Sentry token", "sntrys_", f"{_64}{{60,}}"),
    ("a New Relic key", "NRAK-", "[A-Z0-9]{27}"),
    ("a Grafana token", "glc_", "[A-Za-z0-9+/=]{32,}"),
    ("a Grafana token", "glsa_", f"{_WORD}{{32}}_{_HEX}{{8}}"),
    ("a PostHog key", "phx_", f"{_WORD}{{40,}}"),
    # messages, documents, payments
    ("a Slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-", "[A-Za-z0-9-]{20,}"),
    ("a Slack token", "xapp-", "[0-9]-[A-Za-z0-9-]{20,}"),
    ("a Slack hook", "hooks.slack.com/", "(?:services|workflows|triggers)/[A-Za-z0-9/]{30,}"),
    ("a Discord hook", "discord.com/api/webhooks/", f"[0-9]{{17,20}}/{_URL}{{60,}}"),
    ("a Discord hook", "discordapp.com/api/webhooks/", f"[0-9]{{17,20}}/{_URL}{{60,}}"),
    ("a Teams hook", "webhook.office.com/webhookb2/", "[A-Za-z0-9@/-]{60,}"),
    ("a Telegram token", ":AA", f"{_URL}{{33}}", "[0-9]{8}"),
    ("a Twilio key", "SK", f"{_HEX}{{32}}"),
    ("a Resend key", "re_", f"{_WORD}{{8}}_{_WORD}{{20,}}"),
    ("a Dropbox token", "sl.", f"{_URL}{{120,}}"),
    ("a PagerDuty key", "u+", f"{_URL}{{18}}(?![A-Za-z0-9_-])"),
    ("a SendGrid key", "SG.", rf"{_URL}{{22}}\.{_URL}{{43}}"),
    ("a Mailgun key", "key-", f"{_HEX}{{32}}"),
    ("a Mailchimp key", "-us", "[0-9]{1,2}", f"{_HEX}{{32}}"),
    ("a Stripe key", "sk_live_ rk_live_ sk_test_ rk_test_", f"{_WORD}{{24,}}"),
    ("a Stripe secret", "whsec_", f"{_WORD}{{32,}}"),
    ("a Square token", "sq0atp- sq0csp-", f"{_URL}{{22,}}"),
    ("a PayPal token", "access_token$production$", rf"[0-9a-z]{{16}}\${_HEX}{{32}}"),
    ("a Shopify token", "shpat_ shpca_ shppa_ shpss_", "[0-9a-fA-F]{32}"),
    ("a Linear key", "lin_api_", f"{_WORD}{{40}}"),
    ("a Notion token", "ntn_ secret_", f"{_WORD}{{43,}}"),
    ("an Airtable token", "pat", rf"{_WORD}{{14}}\.{_HEX}{{64}}"),
    ("a Figma token", "figd_", f"{_URL}{{40,}}"),
    ("a Postman key", "PMAK-", f"{_HEX}{{24}}-{_HEX}{{34}}"),
    ("an Atlassian token", "ATATT3", "[A-Za-z0-9_=-]{100,}"),
    ("a Contentful token", "CFPAT-", f"{_URL}{{43}}"),
    ("a HubSpot token", "pat-na1- pat-eu1-", f"{_HEX}{{8}}-[0-9a-f-]{{27}}"),
    ("a Mapbox token", "sk.eyJ", rf"{_URL}{{60,}}\.{_URL}{{20,}}"),
    ("a JSON Web Token", "eyJ", rf"{_URL}{{15,}}\.eyJ{_URL}{{15,}}\.{_URL}{{20,}}"),
)
_MADE_UP = re.compile(
    rb"(?i)example|sample|dummy|fake|x{5}|\.{3}|your|changeme|placeholder|redacted|"
    rb"12345678|abcdefgh|deadbeef|0{8}"
)
# Signs that end with a letter or a digit, as source, JSON, URLs and terminals have them.
_ESCAPES = (
    r"\\[abfnrtv0]",
    r"\\[0-7]{3}",
    r"\\x[0-9A-Fa-f]{2}",
    r"\\u[0-9A-Fa-f]{4}",
    "%[0-9A-Fa-f]{2}",
    r"[0-9;[]m",  # a terminal's colour
)
_FEWEST_SIGNS = 9
_SHORTEST = 20
_LONGEST_BEFORE = 32
_IN_TOKENS = f"{string.ascii_letters}{string.digits}_+/=.~:@$-".encode()
_BLANKED = bytes(sign if sign in _IN_TOKENS else ord(" ") for sign in range(256))


class SecretMatch(NamedTuple):
    """Something that looks like a secret: the byte at which it begins, its kind in words."""

    start: int
    kind: str


def prefixed(data: bytes, *, bounded: bool = True) -> Iterator[SecretMatch]:
    """Yield the tokens in a text that have an issuer's prefix, but for examples. With `bounded` a
    token is a word's beginning; texts of a column stand in one row."""
    words = b" ".join(word for word in data.translate(_BLANKED).split() if len(word) >= _SHORTEST)
    for prefix, pattern, before, kind in _patterns(bounded=bounded):
        if prefix in words:
            for match in pattern.finditer(data):
                if not is_made_up(data[max(match.start() - before, 0) : match.end()]):
                    yield SecretMatch(match.start(), kind)


def is_made_up(value: bytes) -> bool:
    """Return whether a value is an example or stands for one: few different signs, or words of
    manuals."""
    return len(set(value)) < _FEWEST_SIGNS or has_words_of_manuals(value)


def has_words_of_manuals(value: bytes) -> bool:
    """Return whether it has a word, or a row of signs, that stands for a value in manuals."""
    return _MADE_UP.search(value) is not None


@functools.cache
def _patterns(*, bounded: bool) -> tuple[tuple[bytes, re.Pattern[bytes], int, str], ...]:
    """Return prefix, form, how many bytes before it belong to the token, and kind; compiled on
    first use."""
    return tuple(
        (
            prefix.encode(),
            _pattern(prefix, *form, bounded=bounded),
            _LONGEST_BEFORE * (len(form) > 1),
            kind,
        )
        for kind, prefixes, *form in _TOKENS
        for prefix in prefixes.split()
    )


def _pattern(prefix: str, rest: str, before: str = "", *, bounded: bool) -> re.Pattern[bytes]:
    """Return the pattern of a secret. The prefix comes first, as a plain text is found faster; what
    is to stand before it, or must not, is looked for behind it."""
    quoted = re.escape(prefix)
    if not bounded and not before:
        return re.compile(f"{quoted}{rest.replace(',}', '}')}".encode())  # the next text follows
    behind = [rf"(?<={escape}{quoted})" for escape in ([before] if before else _ESCAPES)]
    if not before:
        behind.insert(0, rf"(?<![A-Za-z0-9]{quoted})")
    return re.compile(f"{quoted}(?:{'|'.join(behind)}){rest}".encode())
