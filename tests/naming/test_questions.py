"""Questions: the groups of largest entropy, and answers that no geometry outweighs."""

import itertools

import numpy as np
import pytest

from unpaired.naming.names import answer_evidence, name_classes, name_clusters
from unpaired.naming.questions import least_certain, name_entropy


def test_entropy_is_that_of_each_row():
    marginals = np.array([[1.0, 0.0, 0.0, 0.0], [0.25] * 4, [0.5, 0.5, 0.0, 0.0]])
    np.testing.assert_allclose(name_entropy(marginals), [0.0, np.log(4), np.log(2)])


def ask(**changed):
    given = {
        "marginals": np.array([[0.9, 0.1, 0.0], [0.1, 0.3, 0.6], [0.0, 0.6, 0.4]]),
        "groups": np.array([1, 1, 2, 0, 1, 2]),
        "sureness": np.array([0.2, 0.9, 0.5, 0.7, 0.4, 0.6]),
        "classes": np.array(["cat", "dog", "ship"]),
        "k": 2,
        "n_examples": 2,
    }
    return least_certain(**{**given, **changed})


def test_the_least_certain_groups_come_first_with_their_surest_rows():
    first, second = ask()
    assert (first.group, second.group) == (1, 2)
    assert first.entropy > second.entropy > 0
    assert first.classes.tolist() == ["ship", "dog", "cat"]
    np.testing.assert_allclose(first.probabilities, [0.6, 0.3, 0.1])
    assert first.rows.tolist() == [1, 4]
    assert (first.size, second.size) == (3, 2)


def test_answered_and_empty_groups_are_not_asked_about():
    assert [q.group for q in ask(k=3, answered=[1])] == [2, 0]
    assert [q.group for q in ask(k=3, groups=np.array([2, 2, 2, 0, 0, 2]))] == [2, 0]


@pytest.mark.parametrize("size", [5, 12])
def test_answers_hold_against_any_geometry(size, seed):
    rng = np.random.default_rng(seed)
    things, names = rng.standard_normal((2, size, 8))
    told = dict(enumerate(rng.permutation(size)[:3].tolist()))
    found = name_clusters([things], [names], answer_evidence(told, size), rng=rng)
    assert {group: int(found.best[group]) for group in told} == told
    assert all(found.marginals[group, name] > 1 - 1e-9 for group, name in told.items())


def test_the_rest_is_the_best_of_all_namings_that_keep_the_answers(seed):
    rng = np.random.default_rng(seed)
    things, names = rng.standard_normal((2, 5, 8))
    kernels = [(things - things.mean(0)), (names - names.mean(0))]
    found = name_clusters([things], [names], answer_evidence({2: 4}, 5))

    def score(order):
        order = list(order)
        total = 0.0
        for centre in ("all", "off"):
            pair = []
            for rows in kernels:
                kernel = rows @ rows.T / np.linalg.norm(rows @ rows.T)
                if centre == "off":
                    np.fill_diagonal(kernel, 0.0)
                    sums = kernel.sum(1)
                    kernel = kernel - (sums[:, None] + sums) / 3 + sums.sum() / 12
                    np.fill_diagonal(kernel, 0.0)
                    kernel = kernel / np.linalg.norm(kernel)
                pair.append(kernel)
            total += (pair[0] * pair[1][np.ix_(order, order)]).sum()
        return total

    kept = [order for order in itertools.permutations(range(5)) if order[2] == 4]
    assert tuple(found.best) == max(kept, key=score)


def test_an_answer_names_all_rows_of_its_group(seed):
    rng = np.random.default_rng(seed)
    centres = 5 * rng.standard_normal((4, 6))
    rows = np.repeat(centres, 30, axis=0) + 0.3 * rng.standard_normal((120, 6))
    named = name_classes(rows, rng.standard_normal((4, 3)), rng=rng)
    wanted = (int(named.assignments.best[0]) + 1) % 4
    again = name_classes(
        rows,
        rng.standard_normal((4, 3)),
        rng=rng,
        answers={0: wanted},
        grouping=(named.space, named.head),
    )
    np.testing.assert_array_equal(again.groups, named.groups)
    assert (again.labels[again.groups == 0] == wanted).all()
