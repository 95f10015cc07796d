"""A method in one file, as a user writes it: ridge regression from x to y, cosine scores."""

import numpy as np


class Ridge:
    least_pairs = 2

    def __init__(self, *, strength=1e-3, random_state=None):
        self.strength, self.random_state = strength, random_state

    def fit(self, x, y, pairs=None):
        x, y, pairs = np.asarray(x, float), np.asarray(y, float), np.asarray(pairs)
        self.mean_x, self.mean_y = x.mean(0), y.mean(0)
        left, right = x[pairs[:, 0]] - self.mean_x, y[pairs[:, 1]] - self.mean_y
        gram = left.T @ left + self.strength * np.eye(x.shape[1])
        self.map = np.linalg.solve(gram, left.T @ right)
        return self

    def transform_x(self, x):
        return self._unit((np.asarray(x, float) - self.mean_x) @ self.map)

    def transform_y(self, y):
        return self._unit(np.asarray(y, float) - self.mean_y)

    def score_matrix(self, x, y):
        return self.transform_x(x) @ self.transform_y(y).T

    @staticmethod
    def _unit(rows):
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


class Fussy(Ridge):
    """Fails on one seed, to see that the others go on."""

    def fit(self, x, y, pairs=None):
        if self.random_state == 1:
            raise ZeroDivisionError("seed 1 is not liked")
        return super().fit(x, y, pairs)
