"""Run a named study, or resume it; the table is written as Markdown into its folder.

The studies `model-agents` and `model-agents-cuda` compare agents with a language model as the author. The studies
`mechanism` and `prompts` ask a language model many times and show it something else in each condition.
Their stages can run on different machines: plan the questions, generate the answers, judge them.
"""

import argparse
import os
from pathlib import Path

from kernel_gym.cli import command_line
from kernel_gym.cli.run_options import add_policy_argument

#: The stages of a study of answers, and how its model is asked.
STAGES = ("all", "plan", "generate", "judge", "results", "profiles")
BACKENDS = ("batched", "local", "openai")

EXAMPLES = """
kernel-gym study --list
kernel-gym study main --size quick --out runs/main-quick
kernel-gym study main --size full --out runs/main --parallel 16
kernel-gym study main --size full --out runs/main --agents value,heuristic --seeds 0
kernel-gym study main --size full --out runs/main --table
kernel-gym study main --policy reference --out runs/main-reference
kernel-gym study main --suite attention,mhc --out runs/main-attention
kernel-gym study lambda --size full --forecast --seeds 0,1,2,3 --out runs/lambda-forecast
kernel-gym study arena --size full --parallel 16 --banks needed --out runs/arena
kernel-gym study arena --size full --arms middle --seeds 0,1 --out runs/arena
kernel-gym study pool --size quick --agents value --budget 20 --out runs/pool
kernel-gym study mechanism --author batched --out runs/mechanism --minutes 20
kernel-gym study mechanism --stage plan --out runs/mechanism
kernel-gym study mechanism --stage generate --author batched --model FILE.gguf --out runs/mechanism
kernel-gym study mechanism --stage judge --workers 16 --out runs/mechanism
kernel-gym study mechanism --replay docs/results/transcripts/mechanism.xz --out runs/mechanism-again
kernel-gym study mechanism --stage profiles --profiles weak,middle --out runs/mechanism-again
kernel-gym study prompts --author local --conditions draft-1,draft-2 --limit 20 --out runs/prompts
kernel-gym study model-agents --size full --author batched --parallel 25 --out runs/model-agents
kernel-gym study model-agents --size full --replay docs/results/transcripts/model-agents.tar.xz --out runs/again
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("name", nargs="?", help="study; --list names them")
    parser.add_argument("--list", action="store_true", help="list the studies with their sizes")
    parser.add_argument("--size", default="quick", help="quick (default; minutes) or full (hours)")
    add_policy_argument(parser, "strict")
    parser.add_argument("--out", type=Path, help="folder of the study (default runs/NAME-SIZE)")
    parser.add_argument(
        "--parallel", type=command_line.count, default=os.cpu_count() or 1, help="runs at once (default: one a core)"
    )
    parser.add_argument("--agents", type=command_line.words, default=(), help="only these; others may be added later")
    parser.add_argument(
        "--arms", type=command_line.words, default=(), help="only these, and those whose memory they begin with"
    )
    parser.add_argument("--suite", type=command_line.words, default=(), help="suites in place of the study's tasks")
    parser.add_argument("--seeds", type=command_line.words, default=(), help="only these, comma-separated numbers")
    parser.add_argument("--forecast", action="store_true", help="forecast verdicts instead of judging kernels")
    parser.add_argument(
        "--budget",
        type=command_line.count,
        default=0,
        help="attempts a task, instead of the size's",
    )
    parser.add_argument(
        "--banks",
        default="all",
        choices=("all", "needed"),
        help="runs on forecasts that write their memory: all (default), or those whose memory another begins with",
    )
    parser.add_argument("--table", action="store_true", help="run nothing; write the table of the complete runs")
    models = parser.add_argument_group("studies that ask a model (mechanism, prompts, model-agents, model-agents-cuda)")
    models.add_argument("--author", default="local", choices=BACKENDS, help="how the model is asked (default: local)")
    models.add_argument("--model", default="", help="a .gguf file, an installed model, or a name at an endpoint")
    models.add_argument(
        "--replay", type=Path, metavar="FILE", help="take the answers from an archive of the study, no model"
    )
    models.add_argument("--unsafe", action="store_true", help="run kernels although the sandbox here is weak")
    answers = parser.add_argument_group("studies of a model's answers (mechanism, prompts)")
    answers.add_argument("--stage", default="all", choices=STAGES, help="what to do (default: all, one after another)")
    answers.add_argument(
        "--profiles",
        type=command_line.words,
        default=(),
        help="profiles of the simulated author that --stage profiles compares with the answers (default: all)",
    )
    answers.add_argument("--conditions", type=command_line.words, default=(), help="plan only these")
    answers.add_argument("--minutes", type=float, help="time limit; the same command goes on")
    answers.add_argument("--limit", type=command_line.count, help="ask at most so many questions")
    answers.add_argument("--batch-size", type=command_line.count, default=192, help="answers at once on a GPU")
    answers.add_argument(
        "--workers", type=command_line.count, default=os.cpu_count() or 1, help="verifications at once"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, show progress with the time left, write and print the table."""
    if arguments.list or not arguments.name:
        return _list()

    from kernel_gym.experiments.answer_studies import definition

    if arguments.name in definition.names():
        return _answer_study(arguments)

    from kernel_gym.experiments.studies import study_commands
    from kernel_gym.experiments.studies.study import print_failures

    parts = (arguments.agents, arguments.seeds, arguments.policy, arguments.budget, arguments.suite)
    others = {"model": _asked_model(arguments), "forecast": arguments.forecast, "arms": arguments.arms}
    request = study_commands.StudyRequest(arguments.name, arguments.size, *parts, **others)
    out = arguments.out or Path("runs") / f"{arguments.name}-{arguments.size}"
    if arguments.table:
        status = 0
    else:
        model = arguments.author, arguments.model, arguments.replay, arguments.unsafe
        access = study_commands.ModelAccess(*model)
        status = print_failures(study_commands.run(request, out, arguments.parallel, access, arguments.banks))
    print(study_commands.write_results(request, out))
    print(f"table: {out / 'results.md'}; curves: tensorboard --logdir {out}")
    return status


def _asked_model(arguments: argparse.Namespace) -> str:
    """Return the name in requests of the model that the command line names; empty for the study's own."""
    if arguments.author == "openai" or not arguments.model:
        return str(arguments.model)
    from kernel_gym.llm.local.installation import DEFAULT, model_name

    name = model_name(arguments.model)
    return "" if name == DEFAULT.name else name


def _answer_study(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.answer_studies import commands, definition
    from kernel_gym.experiments.answer_studies.generation import Backend

    study = definition.load(arguments.name)
    served = arguments.author == "openai"
    request = commands.AnswerStudyRequest(
        name=arguments.name,
        folder=arguments.out or Path("runs") / arguments.name,
        stage=arguments.stage,
        backend=Backend(
            arguments.author,
            "" if served else arguments.model,
            arguments.batch_size,
            context_tokens=study.context_tokens,
        ),
        model=arguments.model if served else "",
        conditions=arguments.conditions,
        minutes=arguments.minutes,
        limit=arguments.limit,
        workers=arguments.workers,
        unsafe=arguments.unsafe,
        replay=arguments.replay,
        profiles=arguments.profiles,
    )
    print(commands.run(request))
    return 0


def _list() -> int:
    from kernel_gym.experiments.answer_studies import definition
    from kernel_gym.experiments.studies import study_commands, study_definition

    for name in study_definition.names():
        print(f"{name:20} {study_definition.load(name).question}")
        for size, extent in study_commands.sizes(name).items():
            print(f"{'':20} {size}: {extent}")
    for name in definition.names():
        study = definition.load(name)
        print(f"{name:20} {study.question}")
        print(f"{'':20} {len(study.conditions)} conditions, {study.answers} answers each")
    return 0
