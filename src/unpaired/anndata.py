"""Two assays of cells that were never measured together, as AnnData objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpaired._checks import check_view
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
from unpaired.types import Match

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
        labels: Name of an obs column that one or both have. The other gets its partners' values as
            ``obs["unpaired_<labels>"]``, missing where a cell was left out.
        min_confidence: Leave out cells whose confidence is below this, 0 to 1.
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
        **others,
    }
    notes = note_cells(
        aligned.match,
        (aligned.embed_x(x), aligned.embed_y(y)),
        (rna.obs_names, atac.obs_names),
        settings,
        aligned.seed,
    )
    given = [
        None if labels is None or labels not in other.obs else _labels_of(other.obs[labels], own)
        for own, other in zip(notes, (atac, rna), strict=True)
    ]
    for cells, own, column in zip((rna, atac), notes, given, strict=True):
        cells.obsm[SPACE] = own.space
        cells.obs[PARTNER] = own.partner_name
        cells.obs[CONFIDENCE] = own.confidence
        cells.uns[RECORD] = own.record
        if column is not None:
            cells.obs[f"unpaired_{labels}"] = column
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


def _labels_of(column: Any, notes: CellNotes) -> Any:
    """The partners' values of a column, missing where there is no partner."""
    if column.dtype.kind != "f":
        column = column.astype("category")  # which has room for what is missing, whatever it holds
    return column.reset_index(drop=True).reindex(notes.partner).array
