"""Names of jobs elsewhere: whatever a run is called, services get plain ones."""

from __future__ import annotations

import re

import pytest

from distrain_nb.backends.remote.names import short_name
from tests.odd_names import ALLOWED


@pytest.mark.parametrize("name", ALLOWED)
def test_a_job_s_name_has_no_odd_signs(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", short_name(name))
