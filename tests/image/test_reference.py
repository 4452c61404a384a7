"""Names of images are read as Docker reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.errors import ImageError
from distrain_nb.image.registry.reference import Reference, is_loopback

pytestmark = pytest.mark.brief

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.11", "docker.io/library/python:3.11"),
        ("team/job", "docker.io/team/job:latest"),
        ("localhost/job", "localhost/job:latest"),
        ("localhost:5000/job:a", "localhost:5000/job:a"),
        ("index.docker.io/library/python", "docker.io/library/python:latest"),
        ("[::1]:5000/a/b", "[::1]:5000/a/b:latest"),
        (f"python@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
        (f"gcr.io/p/x:v1@{DIGEST}", f"gcr.io/p/x:v1@{DIGEST}"),
        (
            "europe-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310",
            "europe-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest",
        ),
    ],
)
def test_names_in_full(text: str, full: str) -> None:
    read = Reference.parse(text)
    assert str(read) == full
    assert Reference.parse(str(read)) in (read, Reference(**{**vars(read), "tag": "latest"}))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "''"),
        ("gcr.io/Team/job", "'Team/job'"),
        ("python:", "''"),
        ("python:a b", "'a b'"),
        ("python@sha256:12", "'sha256:12'"),
        ("https://gcr.io/a", "'https:'"),
        ("gcr.io/a//b", "'a//b'"),
    ],
)
def test_a_bad_name_is_refused_with_its_bad_part(text: str, wrong: str) -> None:
    with pytest.raises(ImageError, match="invalid image name") as caught:
        Reference.parse(text)
    assert wrong in str(caught.value)


def test_a_digest_goes_before_a_tag() -> None:
    read = Reference.parse(f"gcr.io/p/x:v1@{DIGEST}")
    assert read.identifier == DIGEST
    assert read.pinned() == f"gcr.io/p/x@{DIGEST}"


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:5000", "[::1]:5000"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["gcr.io", "localhost.example.com", "127.0.0.1.example.com"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


word = st.text("abcxyz019", min_size=1, max_size=8)
name = st.builds("{}{}{}".format, word, st.sampled_from([".", "_", "__", "-", "---"]), word)


@settings(deadline=None)
@given(host=word.map("{}.example:5000".format), path=st.lists(name, min_size=1), tag=name)
def test_printing_and_reading_gives_the_same(host: str, path: list[str], tag: str) -> None:
    written = Reference(host, "/".join(path), tag)
    assert Reference.parse(str(written)) == written
