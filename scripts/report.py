#!/usr/bin/env python
"""Write the report of a study, a comparison or a run: one HTML file that needs nothing else."""

from pathlib import Path

from kernel_gym import command_line

EXAMPLES = """
scripts/report.py runs/main
scripts/report.py runs/main --reference heuristic --out main.html
"""


def main() -> int:
    """Write the file and say where."""
    parser = command_line.parser(__doc__ or "", EXAMPLES)
    parser.add_argument("folder", type=Path, help="folder of a study, a comparison or a run")
    parser.add_argument("--reference", default="", help="contender that the others are compared with (default: first)")
    parser.add_argument("--out", type=Path, help="file to write (default: report.html in the folder)")
    arguments = parser.parse_args()

    from kernel_gym.agents.report import write_report

    print(write_report(arguments.folder, arguments.out or arguments.folder / "report.html", arguments.reference))
    return 0


if __name__ == "__main__":
    command_line.run(main)
