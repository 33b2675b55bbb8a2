"""Runs the campaign and prints its table: `python -m tests.campaigns [NAME...] [--quick] [--write]`.

`--write` puts the table into docs/reliability.md. Scenarios that this machine cannot do are told, and leave their row as it was.
"""

import argparse
import re
import sys
import time
from pathlib import Path

from tests.campaigns.bench import ROOT, bench
from tests.campaigns.scenarios import CAMPAIGN, Scenario, Skipped, Tried

PAGE = ROOT / "docs" / "reliability.md"
HEAD = (
    "| what was done | times | held after each | resumed | lost | again with |\n|---|---|---|---|---|---|\n"
)


def row(scenario: Scenario, tried: Tried) -> str:
    """Return a line of the table."""
    resumed = f"{tried.resumed:,}" if tried.resumed else "-"
    return f"| {scenario.harm} | {tried.tried:,} | {scenario.after} | {resumed} | nothing | `{scenario.name}` |\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(each.name for each in CAMPAIGN))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--base", type=Path, help="folder for everything that is made")
    asked = parser.parse_args()
    rows, failed = {}, 0
    began = time.monotonic()
    with bench(asked.base) as work:
        for scenario in CAMPAIGN:
            times = scenario.few if asked.quick else scenario.times
            if not times or (asked.names and scenario.name not in asked.names):
                continue
            since = time.monotonic()
            try:
                tried = scenario.work(work, times)
            except Skipped as why:
                print(f"{scenario.name}: not here: {why}", flush=True)
                continue
            except AssertionError as error:
                failed += 1
                print(f"{scenario.name}: FAILED: {error}", flush=True)
                continue
            rows[scenario.name] = row(scenario, tried)
            print(
                f"{scenario.name}: {tried.tried} times, {tried.resumed} resumed to identical bytes, nothing lost "
                f"({time.monotonic() - since:.0f} s)",
                flush=True,
            )
        print(
            f"{work.resumed_bytes:,} bytes were taken from earlier runs, in {time.monotonic() - began:.0f} s"
        )
    print("\n" + HEAD + "".join(rows.values()))
    if asked.write and not failed:
        _write(rows)
    return 1 if failed else 0


def _write(rows: dict[str, str]) -> None:
    text = PAGE.read_text()
    begin, end = text.index(HEAD) + len(HEAD), text.index("\n\n", text.index(HEAD))
    there = {re.findall(r"`([a-z-]+)` \|$", line)[0]: line + "\n" for line in text[begin:end].splitlines()}
    merged = {**there, **rows}
    table = "".join(merged[each.name] for each in CAMPAIGN if each.name in merged)
    PAGE.write_text(text[:begin] + table.rstrip("\n") + text[end:])


if __name__ == "__main__":
    sys.exit(main())
