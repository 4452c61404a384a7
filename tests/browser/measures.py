"""What a page and its kernel spend: gaps between frames, bytes that arrive, CPU seconds.

`watch` a page before a notebook is opened in it; then `begin` and `end` enclose what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.jupyter import OpenNotebook

# Counted in the page: to hand every message over to here would itself cost frames.
WATCH = """() => {
    const seen = { gaps: [], worst: [], bytes: 0, last: 0 };
    window.__seen = seen;
    const size = (data) => data.byteLength ?? data.size ?? data.length;
    const Socket = window.WebSocket;
    window.WebSocket = class extends Socket {
        constructor(...asked) {
            super(...asked);
            this.addEventListener("message", (event) => { seen.bytes += size(event.data); });
        }
    };
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
            if (entry.name.includes("/distrain/")) seen.bytes += entry.transferSize;
        }
    }).observe({ type: "resource" });
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
            const blame = entry.scripts.map((script) => {
                const where = script.sourceURL.split("/").at(-1).slice(-40);
                return `${Math.round(script.duration)} ms ${script.invoker.slice(-60)} in `
                    + `${script.sourceFunctionName || "?"} of ${where}`;
            });
            seen.worst.push({ ms: entry.duration, at: entry.startTime, blame });
        }
        seen.worst.sort((a, b) => b.ms - a.ms).splice(8);
    }).observe({ type: "long-animation-frame" });
    const frame = (now) => {
        if (seen.last) seen.gaps.push(now - seen.last);
        seen.last = now;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
}"""
BEGIN = """() => { Object.assign(window.__seen, { gaps: [], worst: [], bytes: 0, last: 0 }); }"""


@dataclass(frozen=True)
class Spent:
    """Milliseconds of the gaps between frames, MB that came, CPU seconds of the kernel.

    `worst` says for the longest frames what scripts ran in them.
    """

    frame_p95_ms: float
    frame_max_ms: float
    wire_mb: float
    kernel_cpu_s: float
    worst: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"frame gaps p95 {self.frame_p95_ms:.0f} ms, max {self.frame_max_ms:.0f} ms; "
            f"kernel {self.kernel_cpu_s:.2f} s of CPU; {self.wire_mb:.2f} MB over the wire"
        )


def watch(page: Page) -> None:
    """Count from the moment at which a document is loaded."""
    page.add_init_script(f"({WATCH})()")


class Measured:
    """What is spent on an open notebook from now on."""

    def __init__(self, opened: OpenNotebook) -> None:
        self._page = opened.page
        self.kernel = kernel_process(opened)
        self._cpu = _cpu_seconds(self.kernel)
        self._page.evaluate(BEGIN)

    def end(self) -> Spent:
        """What was spent since this was made, or since the page was loaded anew."""
        seen = self._page.evaluate("() => window.__seen")
        gaps = sorted(seen["gaps"])
        return Spent(
            gaps[int(len(gaps) * 0.95)],
            gaps[-1],
            seen["bytes"] / 1e6,
            _cpu_seconds(self.kernel) - self._cpu,
            tuple(f"{one['ms']:.0f} ms: {'; '.join(one['blame'])}" for one in seen["worst"]),
        )


def kernel_process(opened: OpenNotebook) -> int:
    """The process id of a notebook's kernel."""
    file = f"kernel-{opened.kernel_id()}.json"
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(word.endswith(file) for word in words):
            return int(process.pid)
    raise LookupError(f"no process was started with {file}")


def _cpu_seconds(process: int) -> float:
    """User and system time of the process, without that of its children."""
    times = psutil.Process(process).cpu_times()
    return float(times.user + times.system)
