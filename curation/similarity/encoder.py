"""`Encoder`: what turns images and texts into vectors, and how to open one by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from curation.errors import UsageError
from curation.similarity.embeddings import EncoderIdentity, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image

Output = Literal["projected", "pooled"]
OUTPUTS: dict[str, str] = {
    "projected": "the joint space of images and texts (open_clip's encode_image)",
    "pooled": "the class token after the last layer norm, before projection (CLIPVisionModel.pooler_output, as in "
    "FindMeIfYouCan)",
}


class Encoder(Protocol):
    """An encoder of images, and of texts where it has a text tower."""

    @property
    def identity(self) -> EncoderIdentity:
        """What decides its numbers."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    def prepare(self, image: Image) -> Vectors:
        """Return an image as the network takes it; called in threads, ahead of `encode_prepared`."""

    def encode_prepared(self, batch: Sequence[Vectors]) -> Vectors:
        """Return the vectors of prepared images, shape (b, d)."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, shape (b, d); `SimilarityError` without a text tower."""


def encode_images(encoder: Encoder, images: Sequence[Image]) -> Vectors:
    """Return the vectors of images, shape (b, d)."""
    return encoder.encode_prepared([encoder.prepare(image) for image in images])


def open_encoder(
    name: str,
    *,
    pretrained: str = "",
    config: Path | None = None,
    output: Output = "projected",
    device: str = "auto",
    random_weights: int | None = None,
) -> Encoder:
    """Return an encoder by name: ``colour``, or a model of open_clip.

    Parameters
    ----------
    name : str
        ``colour`` needs no weights and no torch; everything else is a model name of open_clip, ``local-dir:PATH``, or
        the name of `config`.
    pretrained : str
        A tag of open_clip's hub, or a local checkpoint (``.pt``, ``.bin``, ``.safetensors``).
    config : Path, optional
        A model configuration of open_clip as JSON.
    output : {"projected", "pooled"}
    device : {"auto", "cpu", "cuda"}
    random_weights : int, optional
        Draw the weights from this seed: for tests and speed alone.

    Raises
    ------
    UsageError, MissingExtraError, SimilarityError
        No such output or device; a package is missing; the model or checkpoint cannot be opened.
    """
    if output not in OUTPUTS or device not in ("auto", "cpu", "cuda"):
        raise UsageError(
            "The encoder cannot be opened so",
            expected=f"an output of {', '.join(OUTPUTS)}; a device of auto, cpu, cuda",
            found=f"{output}, {device}"[:80],
        )
    if name == "colour":
        from curation.similarity.colour_encoder import ColourEncoder

        return ColourEncoder()
    from curation.similarity.open_clip_encoder import OpenClipEncoder

    return OpenClipEncoder.open(
        name,
        pretrained=pretrained,
        config=config,
        output=output,
        device=device,
        random_weights=random_weights,
    )
