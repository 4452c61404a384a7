"""Names of files as samples, and folders as classes where torchvision's ImageFolder has them so."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

from distrain_nb.worker.packing.errors import PackingFailed
from distrain_nb.worker.packing.tables import CLASS

NO_EXTENSION = "bin"
# What torchvision's ImageFolder takes for an image.
IMAGES = frozenset(["jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp"])

# `scan.seg.png` is the member seg.png of `scan`; in `2024.05.png` the first dot is the name's.
_NAME = re.compile(r"(.+?)((?:\.[A-Za-z_]+)*\.\w+)?", re.DOTALL)
_EXTENSION = re.compile(r"\w+(?:\.\w+)*")

# A file's name without its extension, which all files of a sample share, and the extension.
NameParts = Tuple[str, str]


class SampleNames(NamedTuple):
    """The parts of file names.

    Files without `parts` are passed over. `labels` are classes by the names that samples share;
    `notes` say what a reader of the names may not expect.
    """

    parts: Mapping[str, NameParts]
    labels: Mapping[str, str]
    notes: Tuple[str, ...] = ()


def sample_names(names: Sequence[str]) -> SampleNames:
    """Read names of files. Folders are classes where they have images of their own, as for
    ImageFolder: files that are no images, nor beside one, are passed over then."""
    parts = {name: split(name) for name in names}
    inside = [name for name in names if "/" in name and _last(name)[1] in IMAGES]
    if not inside:
        return SampleNames(parts, {})
    if why := _why_not(parts, inside):
        return SampleNames(parts, {}, (f"the folders aren't classes: {why}",))
    taken, notes = _by_images(parts, inside)
    labels = {taken[name][0]: _folder(name) for name in inside}
    return SampleNames(taken, labels, (*notes, *_deeper(inside), *_passed_over(names, taken)))


def labelled_names(names: Sequence[str], labels: Mapping[str, str]) -> SampleNames:
    """Read names of files of which a list says classes, to some at least. Raises PackingFailed
    where files of one sample have several."""
    parts = {name: split(name) for name in names}
    taken, notes = _by_images(parts, [name for name in labels if _last(name)[1] in IMAGES])
    parts.update(taken)
    classes: Dict[str, str] = {}
    for name, label in labels.items():
        stem = parts[name][0]
        if classes.setdefault(stem, label) != label:
            raise PackingFailed(
                f"{name} has the class {label}, but another file of its sample has {classes[stem]}"
            )
    return SampleNames(parts, classes, notes)


def _by_images(
    parts: Mapping[str, NameParts], images: Sequence[str]
) -> Tuple[Dict[str, NameParts], Tuple[str, ...]]:
    """Return the parts of images, and of what is beside one; and what to say of them."""
    if not images:
        return {}, ()
    by_last = not _are_members(parts, images)
    taken = {name: _last(name) if by_last else parts[name] for name in images}
    stems = {stem for stem, _ in taken.values()}
    for name in parts:
        if name not in taken and (both := _beside(name, stems))[1]:
            taken[name] = both
    return taken, _apart(parts, images) if by_last else ()


def split(name: str) -> NameParts:
    """Return the parts of a name as WebDataset reads it, but for dots in numbers."""
    folder, slash, base = name.rpartition("/")
    match = _NAME.fullmatch(base)
    stem, extension = (match[1], match[2] or "") if match else (base, "")
    return folder + slash + stem, extension[1:].lower() or NO_EXTENSION


def _last(name: str) -> NameParts:
    """Return the parts of a name by its last extension; none where its last part has no dot."""
    stem, dot, extension = name.rpartition(".")
    return (stem, extension.lower()) if dot and "/" not in extension else (name, "")


def _beside(name: str, stems: Set[str]) -> NameParts:
    """Return the parts of a file that belongs to an image, such as `1.meta.json` to `1.jpg`."""
    stem = name
    while (at := stem.rfind(".")) > stem.rfind("/"):
        stem = stem[:at]
        if stem in stems and _EXTENSION.fullmatch(name[at + 1 :]):
            return stem, name[at + 1 :].lower()
    return name, ""


def _folder(name: str) -> str:
    return name.partition("/")[0]


def _why_not(parts: Mapping[str, NameParts], inside: Sequence[str]) -> str:
    """Return why folders aren't classes, though there are images in some."""
    for name, (_, extension) in parts.items():
        if extension == CLASS:
            return f"{printable_name(name)} says one"
    outside = [name for name in parts if "/" not in name and _last(name)[1] in IMAGES]
    if len(outside) >= len(inside):
        return f"{printable_name(outside[0])} is an image in none"
    with_images = {_folder(name) for name in inside if name.count("/") == 1}
    lacking = sorted({_folder(name) for name in parts if "/" in name} - with_images)
    return f"{printable_name(lacking[0])} has no image of its own" if lacking else ""


def _are_members(parts: Mapping[str, NameParts], images: Sequence[str]) -> bool:
    """Return whether all samples have the same images, such as `png` and `seg.png`. Otherwise
    further dots are of names: `john.doe.jpg` is no `doe.jpg` of a john."""
    extensions: Dict[str, Set[str]] = {}
    for stem, extension in (parts[name] for name in images):
        extensions.setdefault(stem, set()).add(extension)
    if len({frozenset(extension) for extension in extensions.values()}) > 1:
        return False
    shared = next(iter(extensions.values()))
    plain = any("." not in extension for extension in shared)
    return plain or (len(shared) > 1 and len(extensions) > 1)


def _apart(parts: Mapping[str, NameParts], images: Sequence[str]) -> Tuple[str, ...]:
    """Say that images of one first part are several samples."""
    first: Dict[str, str] = {}
    for name in images:
        earlier = first.setdefault(parts[name][0], name)
        if _last(earlier)[0] != _last(name)[0]:
            both = f"{printable_name(earlier)} and {printable_name(name)}"
            return (f"{both} are two samples: images are read by their last extension",)
    return ()


def printable_name(name: str) -> str:
    """Return a name that any terminal can show."""
    return name if name.isprintable() else ascii(name)


def _deeper(images: Sequence[str]) -> List[str]:
    deeper = [name for name in images if name.count("/") > 1]
    if not deeper:
        return []
    name, folder = map(printable_name, (deeper[0], _folder(deeper[0])))
    return [f"the first folder is the class: {name} is of {folder}"]


def _passed_over(names: Sequence[str], taken: Mapping[str, NameParts]) -> List[str]:
    ignored = [name for name in names if name not in taken]
    if not ignored:
        return []
    files = "1 file was" if len(ignored) == 1 else f"{len(ignored):,} files were"
    some = ", ".join(map(printable_name, ignored[:3])) + (", …" if len(ignored) > 3 else "")
    return [f"{files} passed over ({some}): the folders are classes, and have images alone"]
