"""Deep matching CCA: deep CCA and bipartite matching by turns, from seed pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpaired._checks import check_choice, check_number
from unpaired.baselines.base import Found
from unpaired.baselines.deep_cca import DeepCCA
from unpaired.baselines.mcca import RELATIONS
from unpaired.baselines.rematch import SEEDS, best_pairs, partner_of, seed_pairs, share_changed
from unpaired.naming.smooth_space import unit_rows
from unpaired.types import FloatArray, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class DeepMCCA(DeepCCA):
    """MCCA with deep CCA in the place of CCA; the towers go on from round to round.

    ``seeds_`` says what it began from, as in MCCA.

    Args:
        n_rounds: Rounds of training and matching; round r believes the share r / n_rounds.
        n_epochs_per_round: Epochs after each matching.
        seeds: What to begin from, see MCCA.
        relation: "one-to-one" or "many-to-one".
        n_latent: See DeepCCA, as all that follow.

    References: haghighi2008, andrew2013, mukherjee2017.
    """

    n_rounds: int = 4
    n_epochs_per_round: int = 4
    seeds: str = "auto"
    relation: str = "one-to-one"

    least_pairs: ClassVar[int] = 0

    @property
    def seeds_(self) -> str:
        """What the first towers were trained on."""
        self._check_fitted()
        return str(self._values["seeds"])

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("n_rounds", "n_epochs_per_round"):
            check_number(getattr(self, name), name, 1, integer=True)
        check_choice(self.relation, "relation", RELATIONS)
        check_choice(self.seeds, "seeds", SEEDS)

    def _fit(self, x: FloatArray, y: FloatArray, known: IntArray) -> Found | None:
        pairs, self._values["seeds"] = seed_pairs(
            x, y, known, self.seeds, self.relation, self.seed_
        )
        inputs = self._learn(x, y, pairs)
        partner, changed = partner_of(pairs, len(x)), 0.0
        self.trace_.append(pairs)
        for number in range(1, self.n_rounds + 1):
            embed_x, embed_y = unit_rows(self._map(x, 0)), unit_rows(self._map(y, 1))
            new, _ = best_pairs(embed_x, embed_y, known, self.relation)
            if not len(new):
                break
            believed = new[: -(-len(new) * number // self.n_rounds)]
            pairs = np.concatenate([known, believed])
            self._train(inputs, pairs, self.n_epochs_per_round)
            self._finish(inputs, pairs)
            self.trace_.append(np.concatenate([known, new]))
            matched = partner_of(self.trace_[-1], len(x))
            changed = share_changed(partner, matched)
            partner = matched
            self.history_[-1]["changed"] = changed
        return Found(partner, -self.history_[-1]["loss"], converged=changed <= 0.01)
