"""A stand-in for Cloud Build and the bucket: checks requests against Google's own description of
the API, and really builds, with a Docker daemon."""

from __future__ import annotations

import contextlib
import json
import re
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .docker import Docker


def description() -> dict[str, Any]:
    """Cloud Build's discovery document, as Google's client library ships it."""
    folder = resources.files("googleapiclient.discovery_cache") / "documents"
    return json.loads((folder / "cloudbuild.v1.json").read_text())


def faults_in(value: Any, schema: dict[str, Any], api: dict[str, Any], where: str) -> list[str]:
    """What of a value is not as a schema of the discovery document says."""
    schema = api["schemas"][schema["$ref"]] if "$ref" in schema else schema
    if schema.get("type") == "object":
        known = schema.get("properties", {})
        unknown = [f"{where}.{name}: unknown" for name in value if name not in known]
        inner = [
            faults_in(v, known[k], api, f"{where}.{k}") for k, v in value.items() if k in known
        ]
        return unknown + [fault for faults in inner for fault in faults]
    if schema.get("type") == "array":
        faults = [faults_in(v, schema["items"], api, f"{where}[]") for v in value]
        return [fault for some in faults for fault in some]
    if schema.get("readOnly"):
        return [f"{where}: only the service writes this"]
    right = {"string": str, "boolean": bool, "integer": int}[schema["type"]]
    return [] if isinstance(value, right) else [f"{where}: {value!r} is no {schema['type']}"]


@contextlib.contextmanager
def cloud_build(docker: Docker, folder: Path) -> Iterator[str]:
    """Serve both APIs; gives their address."""
    api, objects, builds = description(), {}, {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if match := re.match(r"/upload/storage/v1/b/([^/]+)/o\?.*name=([^&]+)", self.path):
                objects[match[1], match[2].replace("%2F", "/")] = body
                self._answer(200, {"name": match[2]})
            else:
                self._start(json.loads(body))

        def do_GET(self) -> None:
            self._answer(200, builds[self.path.rpartition("/")[2]])

        def _start(self, body: dict[str, Any]) -> None:
            method = api["resources"]["projects"]["resources"]["locations"]["resources"]
            schema = method["builds"]["methods"]["create"]["request"]
            if faults := faults_in(body, schema, api, "build"):
                self._answer(400, {"error": {"message": "; ".join(faults)}})
                return
            name = str(len(builds))
            builds[name] = {"id": name, "status": "QUEUED"}
            self._answer(200, {"name": "an operation", "metadata": {"build": builds[name]}})
            builds[name] = {"id": name, "status": "WORKING"}
            builds[name] = {"id": name, **self._build(body, folder / name)}

        def _build(self, body: dict[str, Any], where: Path) -> dict[str, Any]:
            source = body["source"]["storageSource"]
            where.mkdir()
            (where / "context.tar.gz").write_bytes(objects[source["bucket"], source["object"]])
            with tarfile.open(where / "context.tar.gz") as tar:
                tar.extractall(where / "context", filter="data")
            (step,) = body["steps"]
            try:
                docker(*step["args"][:-1], str(where / "context" / step["args"][-1]))
                said = docker("push", body["images"][0])
            except RuntimeError as error:
                return {"status": "FAILURE", "failureInfo": {"detail": str(error)[-300:]}}
            digest = re.search(r"sha256:[0-9a-f]{64}", said)
            assert digest is not None
            image = {"name": body["images"][0], "digest": digest[0]}
            return {"status": "SUCCESS", "results": {"images": [image]}}

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
