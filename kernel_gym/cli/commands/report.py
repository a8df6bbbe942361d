"""Write the report of a study, a comparison or a run: one self-contained HTML file."""

import argparse
from pathlib import Path

EXAMPLES = """
kernel-gym report runs/main
kernel-gym report runs/main --reference heuristic --run context-value/0 --out main.html
kernel-gym report runs/mine --pictures pictures
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("folder", type=Path, help="folder of a study, a comparison or a run")
    parser.add_argument(
        "--reference",
        default="",
        help="contender that the others are compared with (default: as in the study or comparison)",
    )
    parser.add_argument("--run", default="", metavar="CONTENDER/SEED", help="run shown in detail (default: the best)")
    parser.add_argument(
        "--attempts",
        choices=("auto", "all", "one", "none"),
        default="auto",
        help="runs whose attempts can be browsed: all, the one in detail, none (default: all unless they are too many)",
    )
    parser.add_argument("--out", type=Path, help="file to write (default: report.html in the folder)")
    parser.add_argument("--no-traces", action="store_true", help="don't run the fastest kernels again for their traces")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="write only the pictures, as SVG files")


def run(arguments: argparse.Namespace) -> int:
    """Write the file and print its path."""
    from kernel_gym.experiments.reports.report import write_pictures, write_report

    if arguments.pictures:
        print(*write_pictures(arguments.folder, arguments.pictures, arguments.run), sep="\n")
        return 0
    out = arguments.out or arguments.folder / "report.html"
    traces = not arguments.no_traces
    print(write_report(arguments.folder, out, arguments.reference, traces, arguments.run, arguments.attempts))
    return 0
