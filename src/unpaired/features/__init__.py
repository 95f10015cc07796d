"""Raw images and sentences in, vectors out."""

from unpaired.features.efficientnet import efficientnet_features

__all__ = ["efficientnet_features"]
