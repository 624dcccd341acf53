"""Encoders over open_clip: pictures and texts, on the CPU in full precision, on a GPU in half."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from curation.errors import EncoderError
from curation.similarity.embeddings import EncoderIdentity, Vectors
from curation.similarity.encoder import Prepared
from curation.similarity.open_clip_model import LoadedModel, load_model

if TYPE_CHECKING:
    from PIL.Image import Image

Embedding = Literal["projected", "pooled"]
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "float16", "bfloat16"]


class OpenClipEncoder:
    """Vectors of an open_clip model.

    Parameters
    ----------
    loaded : LoadedModel
    embedding : {"projected", "pooled"}
        ``projected``: the space that images and texts share (``encode_image``). ``pooled``: the class token after the
        last layer norm, before projection, as FindMeIfYouCan's code takes it (Section 3.1 of the paper, the
        ``pooler_output`` of a CLIP vision model): images only, and only of vision transformers with a class token.
    device : {"auto", "cpu", "cuda"}
    precision : {"auto", "float32", "float16", "bfloat16"}
        Half precision is autocast, on a GPU only; ``auto`` is float16 there and float32 on a CPU.

    Raises
    ------
    EncoderError
        The device is not there or cannot do the precision, or the model has no pooled embedding.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        embedding: Embedding = "projected",
        device: Device = "auto",
        precision: Precision = "auto",
    ) -> None:
        self._loaded = loaded
        self._device = _device(device)
        self._dtype = _precision(precision, self._device)
        self._model = loaded.model.to(self._device)
        self._embedding = embedding
        if embedding == "pooled":
            _take_off_projection(self._model, loaded.name)
        self._of_picture, self._of_batch = _cut(loaded.preprocess)

    @cached_property
    def identity(self) -> EncoderIdentity:
        """What the vectors are comparable by."""
        settings = json.dumps(self._model.visual.preprocess_cfg, sort_keys=True)
        dtype = self._dtype if self._dtype == "float32" else f"{self._dtype} autocast"
        return EncoderIdentity(
            self._loaded.name,
            self._loaded.weights,
            f"RGB, stored orientation, {settings}",
            dtype,
            self._embedding,
        )

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        from PIL import Image

        return int(self.encode_prepared([self.prepare(Image.new("RGB", (8, 8)))]).shape[1])

    def prepare(self, image: Image) -> Prepared:
        """Return a picture resized and cropped as the model wants it: uint8, shape (height, width, 3)."""
        for step in self._of_picture:
            image = step(image)
        return np.asarray(image)

    def encode_prepared(self, batch: Sequence[Prepared]) -> Vectors:
        """Return the vectors of prepared pictures, float32, shape (b, d)."""
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(batch)).to(self._device)
            # Whole numbers travel to the device, a quarter of the bytes; the steps are those of the model's transform.
            values = pixels.permute(0, 3, 1, 2).to(torch.float32).div(255)
            for step in self._of_batch:
                values = step(values)
            with self._autocast():
                vectors = self._model.encode_image(values)
            return _array(vectors)

    @contextmanager
    def one_core_each(self) -> Iterator[bool]:
        """Let batches be encoded side by side on a CPU (see `curation.similarity.encoder.one_core_each`)."""
        import torch

        if self._device != "cpu":
            yield False
            return
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield True
        finally:
            torch.set_num_threads(before)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, float32, shape (b, d).

        Raises
        ------
        EncoderError
            The weights hold no text tower, the embedding is ``pooled``, the tokenizer is not at hand, or a text is
            longer than the model reads.
        """
        import torch

        self._require_texts()
        for text in texts:
            self._require_short(text)
        with torch.inference_mode():
            tokens = self._tokenizer(list(texts)).to(self._device)
            with self._autocast():
                vectors = self._model.encode_text(tokens)
            return _array(vectors)

    def _require_texts(self) -> None:
        if self._embedding == "pooled":
            raise EncoderError(
                "The pooled embedding is of images only: texts meet images in the projected one",
                hint="--embedding projected, for images and texts",
            )
        if not self._loaded.has_text:
            raise EncoderError(
                "The weights have no text tower",
                where=self._loaded.name,
                hint="--pretrained with a whole CLIP",
            )

    def _require_short(self, text: str) -> None:
        tokenizer = self._tokenizer
        encode, length = getattr(tokenizer, "encode", None), getattr(tokenizer, "context_length", None)
        # open_clip cuts longer texts without a word; two places are for the marks of begin and end.
        if encode and length and len(encode(text)) + 2 > length:
            raise EncoderError(
                "A text is longer than the model reads",
                where=text[:80],
                expected=f"at most {length - 2} tokens",
                found=f"{len(encode(text))} tokens",
            )

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            return self._loaded.tokenizer()
        # Some tokenizers fetch files: whatever their client raises.
        except Exception as error:
            raise EncoderError(
                "The model's tokenizer is not at hand", where=self._loaded.name, found=str(error)[:300]
            ) from None

    def _autocast(self) -> AbstractContextManager[Any]:
        import torch

        if self._dtype == "float32":
            return nullcontext()
        casting: AbstractContextManager[Any] = torch.autocast(self._device, dtype=getattr(torch, self._dtype))
        return casting


def open_clip_encoder(
    model: str,
    pretrained: str = "",
    *,
    random_weights: int | None = None,
    embedding: Embedding = "projected",
    device: Device = "auto",
    precision: Precision = "auto",
) -> OpenClipEncoder:
    """Return the encoder of a model and its weights (see `load_model` and `OpenClipEncoder` for what they may be)."""
    loaded = load_model(model, pretrained, random_weights=random_weights)
    return OpenClipEncoder(loaded, embedding=embedding, device=device, precision=precision)


def _device(device: Device) -> str:
    import torch

    at_hand = bool(torch.cuda.is_available())
    if device == "cuda" and not at_hand:
        raise EncoderError("No GPU is at hand", where="--device cuda", hint="--device cpu")
    return "cuda" if device == "cuda" or (device == "auto" and at_hand) else "cpu"


def _precision(precision: Precision, device: str) -> str:
    if device == "cpu" and precision not in ("auto", "float32"):
        raise EncoderError(
            "Half precision is for GPUs; on a CPU it is slower",
            where=f"--precision {precision}",
            hint="--precision float32",
        )
    return ("float16" if device == "cuda" else "float32") if precision == "auto" else precision


def _take_off_projection(model: Any, name: str) -> None:
    visual = model.visual
    plain = getattr(visual, "pool_type", "") == "tok" and getattr(visual, "attn_pool", None) is None
    if not plain or not hasattr(visual, "ln_post") or not hasattr(visual, "proj"):
        raise EncoderError(
            "The model has no pooled embedding: its image tower has no class token of its own",
            where=name,
            expected="a vision transformer such as ViT-B-32",
            hint="--embedding projected",
        )
    # open_clip's own forward leaves the projection out where there is none.
    visual.proj = None


def _cut(preprocess: Any) -> tuple[list[Any], list[Any]]:
    """Return the steps of a transform before and after the picture becomes a tensor.

    Those before run in threads on each picture, those after on whole batches: the same numbers, computed where they
    cost least. A transform of another make is an `EncoderError`.
    """
    steps = list(getattr(preprocess, "transforms", ()))
    names = [type(step).__name__ for step in steps]
    place = next((number for number, one in enumerate(names) if one.endswith("ToTensor")), None)
    if place is None or any(one != "Normalize" for one in names[place + 1 :]):
        raise EncoderError(
            "The model's preprocessing is of a form that this version does not know",
            expected="resizing and cropping, ToTensor, Normalize",
            found=", ".join(names)[:200],
        )
    return steps[:place], steps[place + 1 :]


def _array(vectors: Any) -> Vectors:
    import torch

    return np.asarray(vectors.to(torch.float32).cpu().numpy(), np.float32)
