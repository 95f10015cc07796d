"""VGG-19's fc7 from a file of weights under torchvision's names."""

import numpy as np
import pytest
import torch

from unpaired.errors import DataError
from unpaired.features.encoders import IMAGES, load_encoder
from unpaired.features.vgg import VGG19, WEIGHTS_FILE, load_vgg


def test_it_has_the_layers_of_the_published_one():
    with torch.device("meta"):
        weights = VGG19().state_dict()
    # 143,667,240 of torchvision's vgg19, less 4,097,000 of its last layer.
    assert sum(value.numel() for value in weights.values()) == 143_667_240 - 4_097_000
    assert weights["features.34.weight"].shape == (512, 512, 3, 3)
    assert weights["classifier.3.weight"].shape == (4096, 4096)


@pytest.mark.slow  # writes half a gigabyte
def test_it_reads_torchvisions_file_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("UNPAIRED_WEIGHTS", str(tmp_path))
    folder = tmp_path / "vgg19"
    folder.mkdir()
    (folder / WEIGHTS_FILE).write_bytes(b"half a file")
    with pytest.raises(DataError, match="must be torchvision's VGG-19"):
        load_vgg(folder)
    with torch.device("meta"):
        weights = VGG19().state_dict()
    torch.manual_seed(0)
    made = {
        name: torch.randn(value.shape) * (2 / max(1, value[0].numel())) ** 0.5
        for name, value in weights.items()
    }
    made["classifier.6.weight"] = torch.zeros(3, 4096)  # the last layer, which is not used
    torch.save(made, folder / WEIGHTS_FILE)
    encoder = load_encoder("vgg19", IMAGES)
    photo = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    vectors = encoder.encode([photo, photo[::-1].copy()])
    assert vectors.shape == (2, 4096)
    assert vectors.min() == 0 < vectors.max()  # after fc7's ReLU
    assert not np.allclose(vectors[0], vectors[1])
    np.testing.assert_allclose(encoder.encode([photo])[0], vectors[0], rtol=1e-3, atol=1e-3)
