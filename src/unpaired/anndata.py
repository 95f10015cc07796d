"""Two assays of cells that were never measured together, as AnnData objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from unpaired._checks import check_number, check_view
from unpaired._random import RandomState
from unpaired.errors import InputError, extra
from unpaired.files.cells import (
    CONFIDENCE,
    MATRIX,
    PARTNER,
    RECORD,
    SPACE,
    CellNotes,
    note_cells,
)
from unpaired.matching import align
from unpaired.math.neighbours import top_k
from unpaired.spaces.space import spread
from unpaired.spaces.translation import HEAT, N_SOFT
from unpaired.types import Match, Verdict

if TYPE_CHECKING:
    from anndata import AnnData


def match(
    rna: AnnData,
    atac: AnnData,
    use_rep_x: str | None = None,
    use_rep_y: str | None = None,
    pairs: Any = None,
    *,
    labels: str | None = None,
    min_confidence: float = 0.0,
    min_label_confidence: float = 0.0,
    random_state: RandomState = 0,
    **others: Any,
) -> Match:
    """Match the cells of two assays one to one, and note on both objects what was found.

    Both get ``obsm["X_unpaired"]``, cells in the space that both assays share, of which inner
    products between the assays are scores; ``obs["unpaired_partner"]``, the partner's name or "";
    ``obs["unpaired_confidence"]``, 0 where left out; and ``uns["unpaired"]`` with verdict,
    settings and seed. Nothing is noted when anything fails.

    Args:
        rna: Cells to find partners for; any assay will do.
        atac: Cells to choose from. There may be more or fewer: the larger side has cells left out.
        use_rep_x: Name in ``rna.obsm`` of what to match by; None or "X" = ``rna.X``.
        use_rep_y: The same for ``atac``.
        pairs: Known pairs, (k, 2) of (row of rna, row of atac).
        labels: Name of an obs column that one or both have. The other gets it as
            ``obs["unpaired_<labels>"]``, missing where a cell was left out, and how far to believe
            it, 0 to 1, as ``obs["unpaired_<labels>_confidence"]``. Where the verdict is "reliable",
            and for columns of decimal numbers, it is the partner's value, with the cell's own
            confidence; elsewhere the ten best cells vote, and confidence is the share of the votes
            times the verdict's probability.
        min_confidence: Leave out cells whose confidence is below this, 0 to 1.
        min_label_confidence: Leave labels out whose confidence is below this, 0 to 1.
        random_state: Seed; the same seed gives the same result.
        others: Further arguments of ``unpaired.align``, such as ``leave_out="auto"``.

    Returns:
        The Match, in the order of the cells of rna.

    Raises:
        InputError: naming the object or the entry that cannot be used.
    """
    _check_cells(rna, "rna")
    _check_cells(atac, "atac")
    if rna is atac:
        raise InputError("rna and atac must be two objects: both are the same. Pass a copy.")
    x = _representation(rna, use_rep_x, "rna", "use_rep_x")
    y = _representation(atac, use_rep_y, "atac", "use_rep_y")
    check_number(min_label_confidence, "min_label_confidence", 0)
    if min_label_confidence > 1:
        raise InputError(
            f"min_label_confidence must be between 0 and 1: got {min_label_confidence!r}. Pass 0.5."
        )
    if labels is None and min_label_confidence:
        raise InputError(
            "min_label_confidence must be left out where labels are not carried over: got "
            f"{min_label_confidence!r}. Name a column as labels, or leave it out."
        )
    if labels is not None and labels not in rna.obs and labels not in atac.obs:
        known = ", ".join(dict.fromkeys([*rna.obs.columns, *atac.obs.columns]))
        raise InputError(
            f'labels must name a column of rna.obs or atac.obs: there is no "{labels}". '
            f"There is {known or 'none'}."
        )
    aligned = align(
        x, y, pairs, random_state=random_state, min_confidence=min_confidence or None, **others
    )
    settings = {
        "use_rep_x": use_rep_x or MATRIX,
        "use_rep_y": use_rep_y or MATRIX,
        "pairs": pairs,
        "labels": labels,
        "min_confidence": min_confidence,
        "min_label_confidence": min_label_confidence,
        **others,
    }
    notes = note_cells(
        aligned.match,
        (aligned.embed_x(x), aligned.embed_y(y)),
        (rna.obs_names, atac.obs_names),
        settings,
        aligned.seed,
    )
    verdict = aligned.match.verdict
    given = [
        None
        if labels is None or labels not in other.obs
        else transfer_labels(other.obs[labels], own, theirs, verdict, min_label_confidence)
        for own, theirs, other in zip(notes, notes[::-1], (atac, rna), strict=True)
    ]
    for cells, own, column in zip((rna, atac), notes, given, strict=True):
        cells.obsm[SPACE] = own.space
        cells.obs[PARTNER] = own.partner_name
        cells.obs[CONFIDENCE] = own.confidence
        cells.uns[RECORD] = own.record
        if column is not None:
            cells.obs[f"unpaired_{labels}"], cells.obs[f"unpaired_{labels}_confidence"] = column
    return aligned.match


def _check_cells(cells: Any, name: str) -> None:
    """Accept an AnnData in memory whose cells have names of their own."""
    with extra("anndata"):
        from anndata import AnnData
    if not isinstance(cells, AnnData):
        raise InputError(
            f"{name} must be an AnnData: it is a {type(cells).__name__}. Read a file with "
            "anndata.read_h5ad, or use unpaired.match for arrays and frames."
        )
    if cells.isbacked:
        raise InputError(f"{name} must be in memory: it is backed. Pass {name}.to_memory().")
    if not cells.obs_names.is_unique:
        twice = cells.obs_names[cells.obs_names.duplicated()][0]
        raise InputError(
            f'{name}.obs_names must differ, since partners are noted by name: "{twice}" occurs '
            f"more than once. Call {name}.obs_names_make_unique()."
        )


def _representation(
    cells: AnnData, key: str | None, name: str, argument: str
) -> NDArray[np.float64]:
    """The numbers to match cells by."""
    if key is None or key == MATRIX:
        if cells.X is None:
            known = ", ".join(cells.obsm) or "none"
            raise InputError(
                f"{argument} must name a representation, since {name} has no X: {name}.obsm has "
                f"{known}."
            )
        return check_view(cells.X, f"{name}.X")
    if key not in cells.obsm:
        held = ", ".join([*([] if cells.X is None else [MATRIX]), *cells.obsm]) or "none"
        raise InputError(
            f'{argument} must name a representation of {name}: there is no "{key}". '
            f"There is {held}."
        )
    return check_view(cells.obsm[key], f'{name}.obsm["{key}"]')


def transfer_labels(
    column: Any, own: CellNotes, other: CellNotes, verdict: Verdict | None, least: float = 0.0
) -> tuple[Any, NDArray[np.float64]]:
    """What a column of the other side says of each cell of this one, and how far to believe it.

    Missing where a cell was left out, or the confidence is below ``least``.
    """
    whole = column.dtype.kind == "f"
    if not whole:
        column = column.astype("category")  # which has room for what is missing, whatever it holds
    column = column.reset_index(drop=True)
    found, confidence = own.partner, np.asarray(own.confidence, dtype=np.float64)
    if not whole and verdict is not None and verdict.level != "reliable":
        found, share = _voted(column.cat.codes.to_numpy(), own, other)
        confidence = np.where(found < 0, 0.0, share * verdict.probability)
    found = np.where(confidence < least, -1, found)
    return column.reindex(found).array, np.where(found < 0, 0.0, confidence)


def _voted(
    codes: NDArray[np.integer[Any]], own: CellNotes, other: CellNotes
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A cell that has the label most voted for, -1 where left out, and that label's share.

    The best ``N_SOFT`` cells vote, each by its score, at the temperature of soft partners.
    """
    spaces = torch.as_tensor(own.space), torch.as_tensor(other.space)
    near, score = top_k(*spaces, min(N_SOFT, len(codes)), metric="inner")
    weight = softmax(score.astype(np.float64) / (HEAT * spread(*spaces)), axis=1)
    votes = np.zeros((len(near), codes.max(initial=0) + 2))  # the last: cells without a label
    for rank in range(near.shape[1]):
        votes[np.arange(len(near)), codes[near[:, rank]]] += weight[:, rank]
    winner = votes[:, :-1].argmax(1)
    voter = (codes[near] == winner[:, None]).argmax(1)  # the best of those who voted for it
    found = near[np.arange(len(near)), voter]
    nobody = votes[:, :-1].max(1) == 0
    return np.where((own.partner < 0) | nobody, -1, found), votes[:, :-1].max(1)
