# SPDX-License-Identifier: Apache-2.0
"""A table of what the parity tests measured, at the end of pytest's output."""

from typing import Callable

import pytest

Table = dict[str, dict[str, tuple[float, float]]]  # of cases, of columns: the error, and the most that it may be
TABLE = pytest.StashKey[Table]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TABLE] = {}


@pytest.fixture
def check(request: pytest.FixtureRequest) -> Callable[[str, str, float, float], None]:
    """check(case, column, error, most): notes the error, which is at most so large."""
    table = request.config.stash[TABLE]

    def note(case: str, column: str, error: float, most: float) -> None:
        worst = max(error, table.get(case, {}).get(column, (0, 0))[0])
        table.setdefault(case, {})[column] = worst, most
        assert error <= most, (case, column, error)

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    table = config.stash[TABLE]
    columns = list(dict.fromkeys(c for row in table.values() for c in row))
    if not table:
        return
    write = terminalreporter.write_line
    most = {c: m for row in table.values() for c, (_, m) in row.items()}
    write("relative errors of logits")
    write("| model | " + " | ".join(f"{c} (<= {most[c]:g})" for c in columns) + " |")
    write("|---" * (len(columns) + 1) + "|")
    for case, row in table.items():
        write(f"| {case} | " + " | ".join(f"{row[c][0]:.1e}" if c in row else "" for c in columns) + " |")
