"""A translation as one ONNX file, for programs that have no Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from unpaired._files import atomic_writer
from unpaired.errors import extra
from unpaired.spaces.translation import Translation

OPSET = 18
"""Version of the operators, of 2022: what reads ONNX today reads it."""


def write_onnx(translation: Translation, path: str | os.PathLike[str]) -> Path:
    """The path, where the translation now is one ONNX graph: "rows" (n, d) to "translated" (n, k).

    Raises:
        DataError: when the package ``onnx`` is missing.
    """
    with extra("onnx"):
        from onnx import TensorProto, checker, helper, numpy_helper

    def constant(name: str, value: Any, kind: Any = np.float32) -> Any:
        return numpy_helper.from_array(np.asarray(value, dtype=kind), name)

    width, columns = translation.matrix.shape
    moved = "moved" if translation.unit else "translated"
    constants = [constant("matrix", translation.matrix), constant("offset", translation.offset)]
    nodes = [
        helper.make_node("MatMul", ["rows", "matrix"], ["turned"]),
        helper.make_node("Add", ["turned", "offset"], [moved]),
    ]
    if translation.unit:
        constants += [constant("axis", [1], np.int64), constant("least", 1e-12)]
        nodes += [
            helper.make_node("ReduceL2", ["moved", "axis"], ["lengths"], keepdims=1),
            helper.make_node("Max", ["lengths", "least"], ["bounded"]),
            helper.make_node("Div", ["moved", "bounded"], ["translated"]),
        ]
    graph = helper.make_graph(
        nodes,
        "translation",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", width])],
        [helper.make_tensor_value_info("translated", TensorProto.FLOAT, ["n", columns])],
        constants,
    )
    model = helper.make_model(
        graph,
        producer_name="unpaired",
        ir_version=8,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    checker.check_model(model)
    with atomic_writer(path, binary=True) as handle:
        handle.write(model.SerializeToString())
    return Path(path)
