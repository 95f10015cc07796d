import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def glosses():
    """100 texts and their vectors by six encoders, where UNPAIRED_DATA has them."""
    file = Path(os.environ.get("UNPAIRED_DATA", "nowhere")) / "glosses" / "part0.npz"
    if not file.is_file():
        pytest.skip("UNPAIRED_DATA has no glosses")
    with np.load(file) as held:
        names = ("text", "minilm", "gte", "mpnet", "use", "wordllama", "wink")
        return {name: held[name][:100] for name in names}


@pytest.fixture
def nearest_mean_accuracy():
    """How many of 200 photos of the sample lie nearest to the mean of their own class."""

    def judge(encoder):
        from unpaired.datasets import load_sample

        sample = load_sample()
        size = (encoder.side, encoder.side)
        large = [  # as read_photo enlarges them
            np.asarray(Image.fromarray(photo).resize(size, Image.Resampling.BICUBIC))
            for photo in sample.images[:400]
        ]
        rows = np.concatenate([encoder.encode(large[i : i + 50]) for i in range(0, 400, 50)])
        truth = sample.labels[:400]
        means = np.stack([rows[:200][truth[:200] == c].mean(0) for c in range(10)])
        nearest = ((rows[200:, None] - means) ** 2).sum(2).argmin(1)
        return (nearest == truth[200:]).mean()

    return judge
