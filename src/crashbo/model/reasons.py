"""Crashes with named reasons: one margin for all of them, or one each where the evidence prefers that."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from crashbo.model.average import weigh_all
from crashbo.model.block import Block
from crashbo.model.numbers import Numbers

OTHER = ""  # the name of the margin of all crashes without a margin of their own


@dataclass(frozen=True)
class Reasons:
    """Which margin each named reason has: its place in `names`, which has `OTHER` for unnamed and rare ones."""

    names: tuple[str, ...] = (OTHER,)

    def margin(self, reason: str) -> int:
        """The margin of a crash with this reason."""
        return self.names.index(reason) if reason in self.names else 0

    def split(self, block: Block, reasons: Sequence[str]) -> Block:
        """The block with its crashes, whose reasons are given, on their margins."""
        if len(self.names) == 1:
            return block
        margins = np.array([self.margin(one) for one in reasons], dtype=np.int64)
        return replace(block, above_margin=margins, margins=len(self.names))


def choose_reasons(block: Block, reasons: Sequence[str], numbers: Numbers) -> Reasons:
    """Give reasons of the block's crashes ("" where none was told) margins of their own where the evidence prefers it.

    Math: pooled, the reason of a crash says nothing about its place: evidence of one margin times that of the counts
        n_r under a uniform Dirichlet prior, (R - 1)! prod n_r! / (N + R - 1)!;  split: evidence of all margins
        together, a trial beyond two limits being called by either name (see `Block.rows`)
    """
    counts = Counter(reasons)
    named = sorted(name for name, count in counts.items() if name and count >= numbers.reason_count)
    if not named or len(counts) < 2 or not len(block.values) or block.self_limited:
        return Reasons()
    rest = any(name not in named for name in counts)
    split = Reasons((OTHER, *named) if rest else tuple(named))
    sizes = np.bincount([split.margin(one) for one in reasons], minlength=len(split.names))
    log_counts = gammaln(len(sizes)) + gammaln(sizes + 1).sum() - gammaln(sizes.sum() + len(sizes))
    pooled = weigh_all(block, numbers).log_evidence + float(log_counts)
    apart = weigh_all(split.split(block, reasons), numbers).log_evidence
    return split if apart > pooled else Reasons()
