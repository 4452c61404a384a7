"""A push over a bad connection: it gets through, or fails clearly and leaves no broken tag."""

from __future__ import annotations

import base64
import json
import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from distrain_nb.errors import ImageError
from distrain_nb.image.builders.append import build
from distrain_nb.image.image import Image
from distrain_nb.image.recipe import Recipe
from distrain_nb.image.registry import retry
from distrain_nb.image.registry.auth import AuthenticationError
from distrain_nb.image.registry.retry import DigestMismatch, RegistryError

from .programs import SimpleProgram
from .services.faults import Fault, Proxy, faulty
from .services.processes import run
from .services.registries import PASSWORD, USER, registry
from .services.tokens import TokenServer, token_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.worker.files.status import Progress

    from .services.bases import BaseImage

BIG = SimpleProgram(files={"data.bin": os.urandom(400_000)})
UPLOAD = r"PUT /v2/team/job/blobs/uploads/"
BEGIN = r"POST /v2/team/job/blobs/uploads/$"
MANIFEST = r"PUT /v2/team/job/manifests/"
BASE_BLOB = r"GET /v2/bases/tiny/blobs/sha256:"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_PAUSE_S", 0.005)


def whole(image: Image, upstream: str, tmp_path: Path) -> None:
    """Every blob of the image is in the registry, with the digest that it should have."""
    name = f"docker://{upstream}/{image.reference.repository}@{image.reference.digest}"
    run("skopeo", "copy", "-q", "--src-tls-verify=false", name, f"dir:{tmp_path / 'whole'}")


def no_tag(upstream: str) -> bool:
    answer = httpx.get(f"http://{upstream}/v2/team/job/tags/list")
    return answer.status_code == 404 or not answer.json().get("tags")


@contextmanager
def target(tiny_base: str, tmp_path: Path, *faults: Fault) -> Iterator[tuple[Proxy, Recipe]]:
    """An empty registry behind a proxy with these faults, and a recipe for a push to it."""
    with registry(tmp_path / "target") as host, faulty(host, *faults) as proxy:
        yield proxy, Recipe(tiny_base, f"{proxy.host}/team/job:1")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(UPLOAD, times=2, cut_request=0),
        Fault(UPLOAD, times=2, cut_request=50_000),
        Fault(UPLOAD, times=2, cut_answer=0),
        Fault(UPLOAD, times=3, status=500),
        Fault(UPLOAD, times=3, status=429, headers={"Retry-After": "0"}),
        Fault(UPLOAD, times=1, status=404),
        Fault(UPLOAD, times=1, status=416),
        Fault(UPLOAD, times=2, damage_request=True),
        Fault(UPLOAD, times=99, pause=0.002),
        Fault(BEGIN, times=3, status=503),
        Fault(BEGIN, times=3, cut_request=0),
        Fault(r"HEAD ", times=4, status=502),
        Fault(r"HEAD ", times=4, status=429, headers={"Retry-After": "0"}),
        Fault(MANIFEST, times=3, status=500),
        Fault(MANIFEST, times=2, cut_request=0),
        Fault(r".", times=9, status=504),
    ],
    ids=lambda fault: f"{fault.matches[:12]}-{fault.status or 'cut'}",
)
def test_a_push_gets_through(tiny_base: str, tmp_path: Path, fault: Fault) -> None:
    fault = replace(fault)
    before = fault.times
    with target(tiny_base, tmp_path, fault) as (proxy, recipe):
        image = build(BIG, recipe)
        assert fault.times < before
        whole(image, proxy.upstream, tmp_path)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(BASE_BLOB, times=2, cut_answer=200_000),
        Fault(BASE_BLOB, times=1, cut_answer=0),
        Fault(BASE_BLOB, times=2, status=503),
        Fault(BASE_BLOB, times=1, damage_answer=True),
        Fault(r"GET /v2/bases/tiny/manifests/", times=2, status=500),
        Fault(r"GET /v2/bases/tiny/manifests/", times=2, cut_answer=0),
    ],
    ids=["cut in the middle", "cut at once", "503", "damaged", "manifest 500", "manifest cut"],
)
def test_a_base_is_read_over_a_bad_connection(tiny_base: str, tmp_path: Path, fault: Fault) -> None:
    fault = replace(fault)
    before = fault.times
    source, _, rest = tiny_base.partition("/")
    with target(tiny_base, tmp_path) as (sink, recipe), faulty(source, fault) as proxy:
        image = build(BIG, Recipe(f"{proxy.host}/{rest}", recipe.target))
        assert fault.times < before
        assert image.layers[0].how == "copied"
        whole(image, sink.upstream, tmp_path)


def test_a_cut_download_is_taken_up_where_it_stopped(tiny_base: str, tmp_path: Path) -> None:
    source, _, rest = tiny_base.partition("/")
    cut = Fault(BASE_BLOB + ".{64}$", times=2, cut_answer=600_000)
    with target(tiny_base, tmp_path) as (_, recipe), faulty(source) as proxy:
        build(SimpleProgram(), Recipe(f"{proxy.host}/{rest}", f"{recipe.target}x"))  # the config
        proxy.faults.append(cut)
        proxy.seen.clear()
        other = recipe.target.replace("team/job", "team/other")
        build(SimpleProgram(), Recipe(f"{proxy.host}/{rest}", other))
        ranges = [x.headers.get("Range") for x in proxy.seen if "/blobs/" in x.path]
    assert ranges[0] is None
    starts = [int(said.removeprefix("bytes=").rstrip("-")) for said in ranges[1:] if said]
    assert len(starts) == 2
    assert 500_000 < starts[0] < starts[1]


def test_a_base_that_is_damaged_for_good(tiny_base: str, tmp_path: Path) -> None:
    source, _, rest = tiny_base.partition("/")
    fault = Fault(BASE_BLOB, times=99, damage_answer=True)
    with target(tiny_base, tmp_path) as (sink, recipe), faulty(source, fault) as proxy:
        with pytest.raises(DigestMismatch, match="damaged sha256:"):
            build(BIG, Recipe(f"{proxy.host}/{rest}", recipe.target))
        assert no_tag(sink.upstream)


def test_a_manifest_that_is_not_what_its_digest_says(tiny_base: str, tmp_path: Path) -> None:
    source, _, rest = tiny_base.partition("/")
    fault = Fault(r"GET /v2/bases/tiny/manifests/", times=99, damage_answer=True)
    with (
        target(tiny_base, tmp_path) as (_, recipe),
        faulty(source, fault) as proxy,
        pytest.raises(DigestMismatch, match="has the digest sha256:"),
    ):
        build(BIG, Recipe(f"{proxy.host}/{rest}", recipe.target))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(UPLOAD, times=99, status=500), "Sending sha256:.*failed 6 times.*500"),
        (Fault(UPLOAD, times=99, cut_request=0), "Sending sha256:.*failed 6 times"),
        (Fault(UPLOAD, times=99, damage_request=True), "failed 6 times.*DIGEST_INVALID"),
        (Fault(MANIFEST, times=99, status=502), "Publishing .*failed 6 times.*502"),
        (Fault(BEGIN, times=99, status=403), "doesn't allow it.*docker login"),
        (Fault(BEGIN, times=99, status=405), "405"),
        (Fault(BEGIN, times=99, status=404), "404.*Create the repository first"),
    ],
    ids=["500", "cut", "damaged", "manifest", "403", "405", "404"],
)
def test_a_push_that_cannot_succeed_says_why_and_leaves_no_tag(
    tiny_base: str, tmp_path: Path, fault: Fault, words: str
) -> None:
    with target(tiny_base, tmp_path, replace(fault)) as (proxy, recipe):
        with pytest.raises(RegistryError, match=words):
            build(BIG, recipe)
        assert no_tag(proxy.upstream)


def test_an_interrupt_stops_the_sending(tiny_base: str, tmp_path: Path) -> None:
    def interrupt(event: Progress) -> None:
        if event.done > 1_000_000:
            raise KeyboardInterrupt

    with target(tiny_base, tmp_path) as (proxy, recipe):
        with pytest.raises(KeyboardInterrupt):
            build(SimpleProgram(), recipe, interrupt)
        assert no_tag(proxy.upstream)
        assert proxy.count(MANIFEST) == 0


def test_a_push_that_was_broken_off_goes_on_with_what_is_missing(
    tiny_base: str, tmp_path: Path
) -> None:
    with target(tiny_base, tmp_path, Fault(MANIFEST, times=6, status=500)) as (proxy, recipe):
        with pytest.raises(RegistryError):
            build(BIG, recipe)
        assert no_tag(proxy.upstream)
        proxy.seen.clear()
        image = build(BIG, recipe)
        assert {layer.how for layer in image.layers} == {"already there"}
        assert proxy.count("POST") == 0
        whole(image, proxy.upstream, tmp_path)


def test_a_tag_that_is_there_stays_until_the_new_image_is_whole(
    tiny_base: str, tmp_path: Path
) -> None:
    with target(tiny_base, tmp_path) as (proxy, recipe):
        old = build(SimpleProgram("print('old')"), recipe)
        proxy.faults.append(Fault(UPLOAD, times=99, cut_request=0))
        with pytest.raises(RegistryError):
            build(BIG, recipe)
        url = f"http://{proxy.upstream}/v2/team/job/manifests/1"
        accept = {"Accept": "application/vnd.docker.distribution.manifest.v2+json"}
        assert (
            httpx.head(url, headers=accept).headers["Docker-Content-Digest"] == old.reference.digest
        )


def test_a_refused_mount_is_streamed(tiny_base: str, open_registry: str, tmp_path: Path) -> None:
    fault = Fault(r"POST .*mount=", times=99, no_mount=True)
    _, _, rest = tiny_base.partition("/")
    with faulty(open_registry, fault) as proxy:
        image = build(BIG, Recipe(f"{proxy.host}/{rest}", f"{proxy.host}/refused/mount:1"))
        assert image.layers[0].how == "copied"
        assert fault.times < 99
        begun = proxy.count(r"POST /v2/refused/mount/blobs/uploads/$")
        assert begun == 3  # worker, program, configuration: the base's upload began with the mount
        whole(image, open_registry, tmp_path)


def test_a_refused_mount_and_a_cut(tiny_base: str, open_registry: str, tmp_path: Path) -> None:
    refuse = Fault(r"POST .*mount=", times=99, no_mount=True)
    cut = Fault(r"PUT /v2/refused/again/blobs/uploads/", times=2, cut_request=100)
    _, _, rest = tiny_base.partition("/")
    with faulty(open_registry, refuse, cut) as proxy:
        image = build(BIG, Recipe(f"{proxy.host}/{rest}", f"{proxy.host}/refused/again:1"))
        whole(image, open_registry, tmp_path)


@contextmanager
def guarded(tmp_path: Path, tiny: BaseImage, *faults: Fault) -> Iterator[tuple[Proxy, TokenServer]]:
    """A registry that wants tokens, behind a proxy."""
    tokens = TokenServer()
    folder = tmp_path / "guarded"
    with registry(folder) as host:
        tiny.push(f"{host}/bases/tiny:1")
    with (
        token_server(tmp_path, tokens) as auth,
        registry(folder, auth) as host,
        faulty(host, *faults) as proxy,
    ):
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        docker = Path(os.environ["DOCKER_CONFIG"])
        docker.mkdir()
        (docker / "config.json").write_text(json.dumps({"auths": {proxy.host: {"auth": login}}}))
        yield proxy, tokens


@pytest.mark.parametrize("matches", [UPLOAD, MANIFEST, BEGIN, r"HEAD "])
def test_a_token_that_expires_in_mid_push(tmp_path: Path, tiny: BaseImage, matches: str) -> None:
    """The registry turns a token down that it had just taken; the body is sent again."""
    with guarded(tmp_path, tiny, Fault(matches, no_login=True)) as (proxy, tokens):
        image = build(BIG, Recipe(f"{proxy.host}/bases/tiny:1", f"{proxy.host}/team/job:1"))
        assert len(tokens.requests) == 2
        assert image.layers[0].how == "mounted"


def test_a_token_that_really_expires(tmp_path: Path, tiny: BaseImage) -> None:
    """The registry's own clock ends the token while a slow upload goes on."""
    with guarded(tmp_path, tiny, Fault(UPLOAD, times=4, pause=0.15)) as (proxy, tokens):
        tokens.life = 3.0
        build(BIG, Recipe(f"{proxy.host}/bases/tiny:1", f"{proxy.host}/team/job:1"))
        assert len(tokens.requests) > 1


def test_a_login_that_is_never_good_enough(tmp_path: Path, tiny: BaseImage) -> None:
    with guarded(tmp_path, tiny, Fault(UPLOAD, times=99, no_login=True)) as (proxy, _):
        with pytest.raises(AuthenticationError, match=f"{proxy.host} doesn't allow it"):
            build(BIG, Recipe(f"{proxy.host}/bases/tiny:1", f"{proxy.host}/team/job:1"))
        assert PASSWORD not in str(proxy.seen)


def test_a_registry_that_is_not_there() -> None:
    name = "127.0.0.1:9/team/job:1"
    with pytest.raises(ImageError) as raised:
        build(SimpleProgram(), Recipe(name, name))
    assert str(raised.value) == (
        "the base image 127.0.0.1:9/team/job:1 can't be read, as 127.0.0.1 can't be reached from "
        "this machine (Connection refused): name one that can with --base IMAGE, or for all jobs "
        "with %distrain config base_image=IMAGE"
    )


def test_a_registry_whose_name_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    base = "nowhere.invalid/team/job:1"
    with pytest.raises(ImageError, match=r"as nowhere\.invalid can't be reached from this machine"):
        build(SimpleProgram(), Recipe(base, "127.0.0.1:9/team/job:1"))
