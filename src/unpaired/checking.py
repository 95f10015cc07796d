"""Will it work on my data? The verdict on a sample, and what to do next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired._threads import few_threads
from unpaired.matching import solve, solve_evident
from unpaired.problem.problem import Problem, check_problem
from unpaired.trust.evidence import shape_of
from unpaired.trust.verdict import GOOD, judge
from unpaired.types import IntArray, Verdict

MOST_ROWS = 1200
"""Rows a side on which a soft alignment is judged, at most: enough within a minute."""
MOST_EVIDENT = 50_000
"""Rows a side among which evident partners are looked for, at most."""
CHANCE_SPREAD = 12**-0.5
"""Standard deviation of the relative rank of a partner by chance."""


@dataclass(frozen=True)
class Check:
    """What can be expected of ``match`` on some data, and what to do next."""

    verdict: Verdict
    rows: tuple[int, int]
    """Rows of x and of y."""
    judged: tuple[int, int]
    """Rows of x and of y that it was judged on; fewer where there are many."""
    n_known: int
    """Known pairs."""
    advice: tuple[str, ...]
    """What to do next, in sentences."""

    def __str__(self) -> str:
        """Return a few lines for a person."""
        lines = [f"verdict: {self.verdict}"]
        judged = f"judged on {self.judged[0]:,} rows of x and {self.judged[1]:,} of y"
        if self.judged != self.rows:
            judged += f", drawn from {self.rows[0]:,} and {self.rows[1]:,}"
        lines.append(f"{judged}, with {self.n_known:,} known pairs")
        return "\n".join([*lines, *(f"next: {sentence}" for sentence in self.advice)])


def check(x: Any, y: Any, pairs: Any = None, *, random_state: RandomState = 0) -> Check:
    """The verdict on a match of a sample of the rows, in under a minute, and what to do next.

    Evident partners are looked for among at most 50,000 rows a side; where there are none, at most
    1,200 rows a side are aligned softly, the known pairs among them. More rows rarely do worse.

    Args:
        x: Rows of one side, (n_x, d_x), as for ``match``.
        y: Rows of the other, (n_y, d_y).
        pairs: Known pairs, (k, 2).
        random_state: Seed of the draw and of the alignment.
    """
    problem = check_problem(x, y, pairs)
    seed = resolve_seed(random_state)
    rng = derive_rng(seed, "check")
    with few_threads(len(problem.x)):
        some = _drawn(problem, MOST_EVIDENT, rng)
        evident = solve_evident(some, derive_rng(seed, "match"))
        if evident is not None:
            verdict = judge(evident, shape_of(some))
        else:
            some = _drawn(problem, MOST_ROWS, rng)
            found = solve(some, seed).match.verdict
            assert found is not None  # one-to-one matches are always judged
            verdict = found
    rows = len(problem.x), len(problem.y)
    n_known = len(problem.known)
    told = advise(verdict, min(rows), n_known, shape_of(some).repeats)
    return Check(verdict, rows, (len(some.x), len(some.y)), n_known, told)


def pairs_to_settle(good: float = GOOD) -> int:
    """Known pairs that settle whether the true partner's expected rank is below ``good``.

    A rule of thumb: the mean rank of n held-out pairs has a standard error of at most 0.29 /
    sqrt(n), that of chance. Two of them are to fit between chance, 0.5, and the middle between it
    and ``good``.

    >>> pairs_to_settle()
    15
    """
    return math.ceil((2.0 * CHANCE_SPREAD / ((0.5 - good) / 2.0)) ** 2)


def advise(verdict: Verdict, n_rows: int, n_known: int, repeats: float) -> tuple[str, ...]:
    """What to do next, in sentences, most useful first."""
    enough = pairs_to_settle()
    found = []
    if verdict.level == "reliable":
        found.append("use the match: single partners can be relied on where confidence is high")
    elif verdict.level == "coarse":
        found.append(
            "use the match for groups of rows (labels, neighbourhoods), not for single partners"
        )
    else:
        found.append("do not build on a match without more: nothing vouches for it")
    if verdict.level != "reliable" and n_known < enough:
        more = "" if not n_known else f" in all ({n_known} are given)"
        found.append(
            f"about {enough} known pairs{more}, drawn at random, would settle it: they "
            "are held out in turn, and placed by fits without them (a rule of thumb)"
        )
    elif verdict.level == "unreliable":
        found.append(
            "the known pairs do not help: the two sides share too little for so few. Give more "
            "pairs and let unpaired fit learn from them, or bring other columns"
        )
    if n_rows < 100:
        found.append("bring more rows: fewer than 100 leave much to chance")
    if repeats > 0.05:
        found.append("drop repeated rows: they cannot be told apart")
    return tuple(found)


def _drawn(problem: Problem, most: int, rng: np.random.Generator) -> Problem:
    """The problem of at most ``most`` rows a side, those of known pairs first."""
    sides = [
        _rows(len(s), problem.known[:, k], most, rng) for k, s in enumerate((problem.x, problem.y))
    ]
    return problem.restrict(sides[0], sides[1])


def _rows(n: int, needed: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    if n <= most:
        return np.arange(n)
    kept = needed[:most]  # the same pairs on both sides
    rest = rng.permutation(np.setdiff1d(np.arange(n), kept))
    return np.sort(np.concatenate([kept, rest[: most - len(kept)]]))
