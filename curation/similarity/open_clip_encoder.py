"""An encoder over open_clip: any of its models, with weights from its hub or from a local file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.canonical import sha256_of_bytes, sha256_of_file
from curation.errors import CurationError, MissingExtraError, MissingFileError, SimilarityError, UsageError
from curation.similarity.embeddings import EncoderIdentity, Vectors
from curation.torchvision_operators import import_torchvision

if TYPE_CHECKING:
    from PIL.Image import Image

_SUFFIXES = (".pt", ".pth", ".bin", ".safetensors")
_LARGEST_CONFIG = 1 << 20


class OpenClipEncoder:
    """A CLIP model; `open` makes one."""

    def __init__(
        self, model: Any, transform: Any, tokenizer: Any, identity: EncoderIdentity, device: str
    ) -> None:
        self._model, self._transform, self._tokenizer = model, transform, tokenizer
        self._identity, self._device = identity, device
        self._dimension = 0

    @classmethod
    def open(
        cls,
        name: str,
        *,
        pretrained: str,
        config: Path | None,
        output: str,
        device: str,
        random_weights: int | None,
    ) -> OpenClipEncoder:
        """Return the encoder of a model (see `curation.similarity.encoder.open_encoder`)."""
        open_clip, torch = _packages()
        chosen = _device(torch, device)
        if config is not None:
            name = _add_config(open_clip, config)
        _check_name(open_clip, name)
        if not pretrained and random_weights is None and not name.startswith("local-dir:"):
            raise UsageError(
                "The model has no weights",
                where=name[:80],
                expected="--pretrained TAG_OR_FILE",
                hint="--random-weights SEED draws them, for trying out alone",
            )
        if random_weights is not None:
            torch.manual_seed(random_weights)
        model, transform = _create(open_clip, name, pretrained, random_weights is not None, chosen)
        if output == "pooled":
            _require_pooled(model, name)
        precision = "float16" if chosen == "cuda" else "float32"
        identity = EncoderIdentity(
            f"open_clip {name}",
            _weights(torch, model, name, pretrained, random_weights),
            f"exif orientation, RGB; {_one_line(transform)}",
            precision,
            output,
        )
        return cls(model, transform, _tokenizer(open_clip, name, model), identity, chosen)

    @property
    def identity(self) -> EncoderIdentity:
        """What decides its numbers."""
        return self._identity

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        if not self._dimension:
            import PIL.Image

            blank = self.prepare(PIL.Image.new("RGB", (8, 8)))
            self._dimension = int(self.encode_prepared([blank]).shape[1])
        return self._dimension

    def prepare(self, image: Image) -> Vectors:
        """Return an RGB image as the network takes it, shape (3, side, side)."""
        prepared: Vectors = self._transform(image).numpy()
        return prepared

    def encode_prepared(self, batch: Sequence[Vectors]) -> Vectors:
        """Return the vectors of prepared images, shape (b, d), as float32."""
        import torch

        if not batch:
            return np.empty((0, self.dimension), np.float32)
        with torch.inference_mode(), self._autocast(torch):
            pixels = torch.from_numpy(np.stack(batch)).to(self._device)
            vectors = (
                self._pooled(pixels)
                if self._identity.output == "pooled"
                else self._model.encode_image(pixels)
            )
        found: Vectors = vectors.float().cpu().numpy()
        return found

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, shape (b, d), as float32.

        Raises
        ------
        SimilarityError
            The model has no text tower or no tokenizer at hand, or its images are not in the joint space (``pooled``).
        """
        import torch

        if (
            self._identity.output == "pooled"
            or self._tokenizer is None
            or not hasattr(self._model, "encode_text")
        ):
            raise SimilarityError(
                "This encoder compares no texts",
                where=self._identity.model,
                expected="a model with a text tower and its tokenizer, and the output 'projected'",
                found=f"output {self._identity.output}, "
                + ("a tokenizer" if self._tokenizer is not None else "no tokenizer at hand"),
            )
        with torch.inference_mode(), self._autocast(torch):
            vectors = self._model.encode_text(self._tokenizer(list(texts)).to(self._device))
        found: Vectors = vectors.float().cpu().numpy()
        return found

    def _autocast(self, torch: Any) -> AbstractContextManager[Any]:
        return torch.autocast("cuda", dtype=torch.float16) if self._device == "cuda" else nullcontext()

    def _pooled(self, pixels: Any) -> Any:
        """Return the class token after the last layer norm: the visual tower with its projection taken away."""
        visual = self._model.visual
        projection, visual.proj = visual.proj, None
        try:
            return visual(pixels)
        finally:
            visual.proj = projection


def _packages() -> tuple[Any, Any]:
    try:
        import_torchvision()
        import open_clip
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "Embeddings by a CLIP model need open_clip and torch",
            found=str(error)[:120],
            hint="pip install 'curation[clip]'; --encoder colour needs neither",
        ) from None
    return open_clip, torch


def _device(torch: Any, device: str) -> str:
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError("There is no GPU that torch can use", where="--device cuda", hint="--device cpu")
    return device


def _add_config(open_clip: Any, config: Path) -> str:
    try:
        data = config.read_bytes() if config.stat().st_size <= _LARGEST_CONFIG else b""
        content = json.loads(data)
    except FileNotFoundError:
        raise MissingFileError("The model configuration does not exist", where=str(config)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise SimilarityError(
            "The model configuration is not JSON", where=str(config), found=str(error)[:120]
        ) from None
    if not isinstance(content, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= content.keys():
        raise SimilarityError(
            "This is no model configuration of open_clip",
            where=str(config),
            expected="embed_dim, vision_cfg, text_cfg",
        )
    open_clip.add_model_config(config)
    return config.stem


def _check_name(open_clip: Any, name: str) -> None:
    if name.startswith(("local-dir:", "hf-hub:")) or name in open_clip.list_models():
        return
    import difflib

    near = difflib.get_close_matches(name, open_clip.list_models(), 3, 0.4)
    raise SimilarityError(
        "open_clip has no such model",
        where=name[:80],
        expected="colour, or a model of open_clip",
        hint=f"did you mean {', '.join(near)}?" if near else "ViT-B-32 is a usual choice",
    )


def _create(open_clip: Any, name: str, pretrained: str, is_random: bool, device: str) -> tuple[Any, Any]:
    path = Path(pretrained)
    if pretrained and path.suffix in _SUFFIXES and not path.is_file():
        raise MissingFileError("The checkpoint does not exist", where=pretrained)
    try:
        model, _, transform = open_clip.create_model_and_transforms(
            name, pretrained=None if is_random else pretrained or None, device=device, weights_only=True
        )
    except CurationError:
        raise
    except Exception as error:
        # open_clip and torch raise whatever comes: KeyError, RuntimeError, UnpicklingError, hub errors.
        raise SimilarityError(
            "The model cannot be opened",
            where=f"{name}, {pretrained}"[:200],
            expected="a checkpoint of this model, or a tag of open_clip's hub (which is downloaded)",
            found=f"{type(error).__name__}: {' '.join(str(error).split())}"[:240],
        ) from None
    return model.eval(), transform


def _weights(torch: Any, model: Any, name: str, pretrained: str, random_weights: int | None) -> str:
    if random_weights is not None:
        return f"random:{random_weights}:{torch.__version__}"
    if pretrained and Path(pretrained).is_file():
        return sha256_of_file(Path(pretrained))
    # A tag, or a folder: the weights themselves are the only identity that stays.
    parts = [name.encode()]
    for key, value in sorted(model.state_dict().items()):
        parts += [key.encode(), value.detach().cpu().contiguous().numpy().tobytes()]
    return sha256_of_bytes(b"\0".join(parts))


def _require_pooled(model: Any, name: str) -> None:
    if not hasattr(getattr(model, "visual", None), "proj"):
        raise SimilarityError(
            "The model has no projection to leave out",
            where=name,
            expected="a vision transformer of CLIP, or --output projected",
        )


def _tokenizer(open_clip: Any, name: str, model: Any) -> Any:
    if not hasattr(model, "encode_text"):
        return None
    try:
        return open_clip.get_tokenizer(name)
    except Exception:
        return None


def _one_line(transform: Any) -> str:
    return " ".join(str(transform).split())
