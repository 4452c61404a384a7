"""The table in docs/compatibility.md: `python -m tests.programs.table` writes it."""

from __future__ import annotations

from pathlib import Path

from tests.programs.running import Program, programs

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN, END = "<!-- programs -->", "<!-- end of programs -->"
HEAD = "| program | started elsewhere by | as a cell |\n| --- | --- | --- |"


def row(program: Program) -> str:
    return f"| {program.title} | `{program.command}` | `%%distrain {program.options}` |"


def main() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    table = "\n".join([HEAD, *map(row, programs())])
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
