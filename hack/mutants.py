#!/usr/bin/env python3
"""mutants.py: changes the rules of kube-status one operator at a time and says which changes no test notices.

    hack/mutants.py --list            every mutant, numbered
    hack/mutants.py [--shard 1/4]     tries them, in a copy of the tree
    hack/mutants.py --only 17,42      tries these

A survivor is a missing test or a change without an effect; docs/conditions.md explains those that are known.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = pathlib.Path("crates/kube-status/src")
RULES = [
    "set.rs", "order.rs", "summary.rs", "mirror.rs", "aggregate.rs", "patch.rs", "draft.rs", "status.rs",
    "merge/mod.rs", "merge/standard.rs", "merge/crowd.rs", "merge/lines.rs",
    "severity/aggregate.rs", "severity/condition.rs", "severity/merge.rs", "severity/mirror.rs", "severity/set.rs",
    "severity/summary.rs", "graded.rs",
    "plural/mod.rs", "run.rs", "allowance.rs",
]
OPERATORS = [
    (r" == ", " != "), (r" != ", " == "),
    (r" < ", " <= "), (r" > ", " >= "), (r" <= ", " < "), (r" >= ", " > "),
    (r" && ", " || "), (r" \|\| ", " && "),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"(?<=[\s(|,])!(?=[a-z(*])", ""),
    (r"\.is_some_and\(", ".is_none_or("), (r"\.is_none_or\(", ".is_some_and("),
    (r"\.is_some\(\)", ".is_none()"), (r"\.is_none\(\)", ".is_some()"),
    (r"\.any\(", ".all("), (r"\.all\(", ".any("),
    (r"\.min_by", ".max_by"), (r"\.min\(", ".max("), (r"\.max\(", ".min("),
    (r"\brposition\b", "position"), (r"\bReverse\(", "("),
    (r" \+ 1\b", ""), (r" - 1\b", ""), (r" \+= ", " -= "),
    (r"\bStatus::True\b", "Status::False"), (r"\bStatus::False\b", "Status::True"),
    (r"\bStatus::Unknown\b", "Status::True"),
    (r"\bPolarity::Negative\b", "Polarity::Positive"), (r"\bPolarity::Positive\b", "Polarity::Negative"),
    (r"\bPriority::Issue\b", "Priority::Info"), (r"\bPriority::Unknown\b", "Priority::Info"),
    (r"\bPriority::Info\b", "Priority::Unknown"),
    (r"\bChange::Text\b", "Change::Nothing"), (r"\bChange::Status\b", "Change::Text"),
    (r": usize = 3;", ": usize = 4;"),
]
# The quick tests first: most mutants do not live to see the properties.
TESTS = [
    ["--test", "rules", "--", "--skip", "laws"],
    ["--test", "rules", "--test", "as_go_does", "--test", "allocations", "--test", "guide"],
]


def mutants():
    """Every change: file, line, where in it, what was there, what stands there instead."""
    for name in RULES:
        text = (ROOT / SOURCE / name).read_text()
        for number, line in enumerate(text.split("\n")):
            code = line.split("//")[0]
            if re.match(r"\s*(#|use |pub use )", code):
                continue
            for pattern, instead in OPERATORS:
                for found in re.finditer(pattern, code):
                    yield name, number, found.start(), found.group(), instead


def describe(number, mutant):
    name, line, _, was, instead = mutant
    return f"{number}: {SOURCE / name}:{line + 1}: `{was.strip()}` -> `{instead.strip() or 'nothing'}`"


def changed(text, mutant):
    _, number, at, was, instead = mutant
    lines = text.split("\n")
    line = lines[number]
    lines[number] = line[:at] + instead + line[at + len(was):]
    return "\n".join(lines)


def copy_of_the_tree(target):
    copy = target / "mutants"
    shutil.rmtree(copy, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    return copy


def fate(copy, environment):
    build = ["cargo", "test", "--quiet", "--package", "kube-status"]
    try:
        built = subprocess.run(build + ["--test", "rules", "--no-run"], cwd=copy, env=environment, capture_output=True)
        if built.returncode != 0:
            return "does not compile"
        for arguments in TESTS:
            run = subprocess.run(build + arguments, cwd=copy, env=environment, capture_output=True, timeout=300)
            if run.returncode != 0:
                return "caught"
    except subprocess.TimeoutExpired:
        return "caught"
    return "SURVIVED"


def main():
    arguments = argparse.ArgumentParser(description="mutation testing of kube-status' rules")
    arguments.add_argument("--list", action="store_true")
    arguments.add_argument("--shard", default="1/1")
    arguments.add_argument("--only", default="")
    chosen = arguments.parse_args()
    every = list(enumerate(mutants()))
    shard, shards = map(int, chosen.shard.split("/"))
    only = {int(n) for n in chosen.only.split(",") if n}
    selected = [(n, m) for n, m in every if (n in only if only else n % shards == shard - 1)]
    if chosen.list:
        print("\n".join(describe(n, m) for n, m in selected))
        return 0

    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    copy = copy_of_the_tree(target)
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target / "mutants-target"))
    tally = {}
    for number, mutant in selected:
        file = copy / SOURCE / mutant[0]
        original = file.read_text()
        file.write_text(changed(original, mutant))
        outcome = fate(copy, environment)
        file.write_text(original)
        tally[outcome] = tally.get(outcome, 0) + 1
        print(f"{outcome:<17}{describe(number, mutant)}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.items())))
    return 1 if tally.get("SURVIVED") else 0


if __name__ == "__main__":
    sys.exit(main())
