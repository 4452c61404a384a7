"""Epochs from a far bucket: small files, our shards, litdata's and mosaicml-streaming's chunks.

`python benchmarks/data.py [FILES [ROUNDS]]`, 20,000 JPEG files of 20 kB unless you say. The bucket
is that of `benchmarks/buckets.py`: it needs npm, and rclone and fuse3 of Debian. Our shards are
read from `s3://`, as the rivals' are, and from the mount, as on Vertex AI; files an object at a
time, as gcsfuse does behind its mount. All readers have 4 workers, batches of 64, and shuffle; each
epoch is the first of a process of its own, and of the rounds the median counts. What is slow or not
decoded is read in the first round only. They share an interpreter in `.cache/benchmark-data`, which
uv makes.

The last line is one JSON object, of samples a second with decoding, more is better:

- `shards_over_raw`, `shards_over_local_disk`: our shards in the bucket over files there, and over
  files on this disk, whose pages are in memory;
- `…_one_worker`: with a loader of one worker, which leaves a core to the store and the network;
- `mounted_shards_over_raw`, `mounted_shards_over_local_disk`: the same of the bucket's mount;
- `shards_over_litdata`, `shards_over_mosaicml`: over theirs in the bucket;
- `packing_over_litdata`, `packing_over_mosaicml`: samples packed a second, from disk to disk.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from PIL import Image

REPOSITORY = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")  # of the development environment
sys.path.insert(0, str(REPOSITORY))
from benchmarks.buckets import KEY, NAME, SECRET, FarBucket, far_bucket, mounted  # noqa: E402
from benchmarks.machine import describe  # noqa: E402
from benchmarks.strategies import epochs  # noqa: E402

RIVALS = ("torch==2.13.0", "pillow", "litdata", "mosaicml-streaming", "s3fs")
CLASSES, PICTURES, SIDE = 10, 500, 192
WORKERS = 4
CALM = (("files", "disk"), ("shards", "bucket"), ("shards", "mount"))
STRATEGY_FILES = 2000
PACK = "import sys; from distrain_nb.data import pack; pack(*sys.argv[1:], size=64e6, shuffle=7)"


def interpreter() -> str:
    """One that has all readers."""
    folder = REPOSITORY / ".cache/benchmark-data"
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
        install = [UV, "pip", "install", "--quiet", "--python", python, *RIVALS]
        subprocess.run(install, check=True)
    return str(python)


def pictures(folder: Path, count: int) -> None:
    """JPEG files of about 20 kB in folders of classes: 500 of them, again and again."""
    numbers = np.random.default_rng(0)
    contents = []
    for _ in range(min(PICTURES, count)):
        coarse = numbers.integers(0, 255, (SIDE // 4, SIDE // 4, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(
            file, "jpeg", quality=92
        )
        contents.append(file.getvalue())
    for number in range(count):
        path = folder / f"class-{number % CLASSES}" / f"{number:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents[number % len(contents)])


class Failed(Exception):
    """A reader has ended with an error: rivals do now and then."""


def timed(python: str, what: str, place: str, number: int, more: str, far: str = "") -> float:
    """Samples a second, or for packing seconds."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "S3_ENDPOINT_URL": far,
        **({"AWS_ENDPOINT_URL": far} if far else {}),
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    program = Path(__file__).with_name("epochs.py")
    command = [python, str(program), what, place, str(number), more]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{what} {place}: {done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return float(found["samples"] / found["seconds"] if found["samples"] else found["seconds"])


def packed(python: str, folder: Path, count: int, rounds: int) -> dict[str, float]:
    """Samples packed a second. What the last round has packed stays."""
    took: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name in ("shards", "litdata", "mosaicml"):
            target = folder / "packed" / name
            shutil.rmtree(target, ignore_errors=True)
            took[name].append(_packing_s(python, name, str(folder / "packed/files"), str(target)))
    return {name: count / statistics.median(each) for name, each in took.items()}


def _packing_s(python: str, name: str, source: str, target: str) -> float:
    """Of a process from its start to its end, for all three."""
    begun = os.times().elapsed
    if name == "shards":
        subprocess.run([sys.executable, "-c", PACK, source, target], check=True, cwd=REPOSITORY)
    else:
        timed(python, f"pack-{name}", target, os.cpu_count() or 1, source)
    return os.times().elapsed - begun


def read(
    python: str, folder: Path, bucket: FarBucket, mount: Path, rounds: int
) -> dict[str, float]:
    """Samples a second by reader, place and what is done with a sample."""
    disk = folder / "packed"
    places = {
        ("shards", "bucket"): f"s3://{NAME}/shards",
        ("files", "disk"): f"{disk}/files",
        ("shards", "mount"): f"{mount}/shards",
        ("shards", "disk"): f"{disk}/shards",
        ("litdata", "bucket"): f"s3://{NAME}/litdata",
        ("mosaicml", "bucket"): f"s3://{NAME}/mosaicml",
        ("files", "bucket"): f"s3://{NAME}/files#{disk}/files",
    }
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        for (reader, where), place in places.items():
            slow = (reader, where) == ("files", "bucket") or reader in ("litdata", "mosaicml")
            if number and slow:
                continue  # minutes, and not where the ratio is close
            for more in ("decoded",) if number or slow else ("decoded", "bytes"):
                try:
                    speed = timed(python, reader, place, WORKERS, more, bucket.far)
                except Failed as wrong:
                    if reader not in ("litdata", "mosaicml"):
                        raise
                    print(wrong, flush=True)
                    speed = math.nan
                found[f"{reader} {where} {more}"].append(speed)
                told(f"{reader}, {where}, {more}", speed)
    for reader, where in CALM:
        speed = timed(python, reader, places[reader, where], 1, "decoded", bucket.far)
        found[f"{reader} {where} one worker"].append(speed)
        told(f"{reader}, {where}, decoded by one worker", speed)
    return {name: statistics.median(each) for name, each in found.items()}


def told(what: str, speed: float) -> None:
    print(f"{what}: {speed:,.0f} samples/s, load {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    arguments = [int(word) for word in sys.argv[1:]]
    count, rounds = [*arguments, *(20_000, 3)[len(arguments) :]]
    python = interpreter()
    print(describe("torch"), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["DISTRAIN_HOME"] = str(folder / "home")
        pictures(folder / "packed/files", count)
        packing = packed(python, folder, count, rounds)
        for packer, speed in packing.items():
            own = [path for path in (folder / "packed" / packer).rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in own)
            print(
                f"{packer} packs {speed:,.0f} samples/s into {len(own)} files, {size:,} bytes",
                flush=True,
            )
        with far_bucket(folder) as bucket:
            bucket.fill(folder / "packed")
            with mounted(bucket) as mount:
                speeds = read(python, folder, bucket, mount, rounds)
        strategies(folder, count)
    ours, mounted_ones = speeds["shards bucket decoded"], speeds["shards mount decoded"]
    calm = {where: speeds[f"{reader} {where} one worker"] for reader, where in CALM}
    found = {
        "shards_over_raw": ours / speeds["files bucket decoded"],
        "shards_over_local_disk": ours / speeds["files disk decoded"],
        "shards_over_local_disk_one_worker": calm["bucket"] / calm["disk"],
        "mounted_shards_over_local_disk_one_worker": calm["mount"] / calm["disk"],
        "mounted_shards_over_raw": mounted_ones / speeds["files bucket decoded"],
        "mounted_shards_over_local_disk": mounted_ones / speeds["files disk decoded"],
        "shards_over_litdata": ours / speeds["litdata bucket decoded"],
        "shards_over_mosaicml": ours / speeds["mosaicml bucket decoded"],
        "packing_over_litdata": packing["shards"] / packing["litdata"],
        "packing_over_mosaicml": packing["shards"] / packing["mosaicml"],
    }
    rounded = {name: round(ratio, 3) for name, ratio in found.items() if not math.isnan(ratio)}
    print(json.dumps(rounded))


def strategies(folder: Path, count: int) -> None:
    """The article's table, of a part of the files."""
    from distrain_nb.data import pack

    study = folder / "study"
    pictures(study / "files", min(STRATEGY_FILES, count // 4))
    pack(str(study / "files"), str(study / "shards"), shuffle=7)
    (folder / "second").mkdir()
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    with far_bucket(folder / "second") as bucket:
        bucket.fill(study / "files", below=f"{study}/files"[1:])
        bucket.fill(study / "shards", below="shards")
        with mounted(bucket) as mount:
            files = f"{study}/files"
            places = {"disk": files, "bucket": files, "shards": f"{mount}/shards"}
            for title, source, seconds in epochs(places, bucket.far, NAME):
                print(f"{title}, {source}: {seconds:.1f} s an epoch", flush=True)


if __name__ == "__main__":
    main()
