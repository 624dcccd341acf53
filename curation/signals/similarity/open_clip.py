"""Encoders of pictures and texts by open_clip models, in full precision on a CPU and in half precision on a GPU."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec
import numpy as np

from curation.core.canonical import sha256_of_bytes, sha256_of_file
from curation.core.errors import EncoderError, MissingExtraError, MissingFileError, install_command
from curation.core.files import read_bytes
from curation.core.json_text import decode_json
from curation.signals.similarity.embeddings import EncoderIdentity, Vectors
from curation.signals.similarity.encoder import Prepared

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
        The device is not available or lacks the precision, or the model has no pooled embedding.
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
            _remove_projection(self._model, loaded.name)

    @cached_property
    def identity(self) -> EncoderIdentity:
        """Identity of the encoder: vectors are comparable if it is equal."""
        settings = json.dumps(self._model.visual.preprocess_cfg, sort_keys=True)
        dtype = self._dtype if self._dtype == "float32" else f"{self._dtype} autocast"
        return EncoderIdentity(
            self._loaded.name, self._loaded.weights, f"RGB, stored orientation, {settings}", dtype, self._embedding
        )

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        from PIL import Image

        return int(self.encode_prepared([self.prepare(Image.new("RGB", (8, 8)))]).shape[1])

    def prepare(self, image: Image) -> Prepared:
        """Return a picture as the model's transform gives it: float32, shape (3, height, width)."""
        prepared: Prepared = self._loaded.preprocess(image).numpy()
        return prepared

    def encode_prepared(self, batch: Sequence[Prepared]) -> Vectors:
        """Return the vectors of prepared pictures, float32, shape (b, d)."""
        import torch

        with torch.inference_mode(), self._autocast():
            return _array(self._model.encode_image(torch.from_numpy(np.stack(batch)).to(self._device)))

    @contextmanager
    def one_core_each(self) -> Iterator[bool]:
        """Let batches be encoded side by side on a CPU (see `curation.signals.similarity.encoder.one_core_each`)."""
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
            The embedding is ``pooled``, the tokenizer is not available, or a text is longer than the model reads.
        """
        import torch

        if self._embedding == "pooled":
            raise EncoderError(
                "The pooled embedding does not encode texts", hint="--set embedding=projected, for images and texts"
            )
        encode, length = (getattr(self._tokenizer, name, None) for name in ("encode", "context_length"))
        for text in texts:
            # open_clip silently cuts longer texts; two tokens mark the beginning and the end.
            if encode and length and len(encode(text)) + 2 > length:
                raise EncoderError(
                    "A text is longer than the model reads",
                    where=text[:80],
                    expected=f"at most {length - 2} tokens",
                    found=f"{len(encode(text))} tokens",
                )
        with torch.inference_mode():
            tokens = self._tokenizer(list(texts)).to(self._device)
            with self._autocast():
                return _array(self._model.encode_text(tokens))

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            return self._loaded.tokenizer()
        # Some tokenizers fetch files: whatever their client raises.
        except Exception as error:
            raise EncoderError(
                "The model's tokenizer is not available", where=self._loaded.name, found=str(error)[:300]
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
    """Return the encoder of a model with its weights (see `load_model` and `OpenClipEncoder` for possible names)."""
    loaded = load_model(model, pretrained, random_weights=random_weights)
    return OpenClipEncoder(loaded, embedding=embedding, device=device, precision=precision)


def _device(device: Device) -> str:
    import torch

    available = bool(torch.cuda.is_available())
    if device == "cuda" and not available:
        raise EncoderError("No GPU is available", where="--device cuda", hint="--device cpu")
    return "cuda" if device == "cuda" or (device == "auto" and available) else "cpu"


def _precision(precision: Precision, device: str) -> str:
    if device == "cpu" and precision not in ("auto", "float32"):
        raise EncoderError(
            "Half precision is for GPUs; on a CPU it is slower",
            where=f"--set precision={precision}",
            hint="--set precision=float32",
        )
    return ("float16" if device == "cuda" else "float32") if precision == "auto" else precision


def _remove_projection(model: Any, name: str) -> None:
    visual = model.visual
    plain = getattr(visual, "pool_type", "") == "tok" and getattr(visual, "attn_pool", None) is None
    if not plain or not hasattr(visual, "ln_post") or not hasattr(visual, "proj"):
        raise EncoderError(
            "The model has no pooled embedding: its image tower has no class token",
            where=name,
            expected="a vision transformer such as ViT-B-32",
            hint="--set embedding=projected",
        )
    # open_clip's own forward skips a projection that is None.
    visual.proj = None


def _array(vectors: Any) -> Vectors:
    import torch

    return np.asarray(vectors.to(torch.float32).cpu().numpy(), np.float32)


LOCAL_FOLDER, HUB = "local-dir:", "hf-hub:"
_CONFIG_FILE = "open_clip_config.json"
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model of open_clip on the CPU, in evaluation mode.

    Attributes
    ----------
    model : torch module
    preprocess : callable
        The model's own transform of a picture for evaluation.
    tokenizer : callable
        Returns open_clip's tokenizer of the model; may fetch files where the model's texts need them.
    name, weights : str
        See `EncoderIdentity`.
    """

    model: Any
    preprocess: Any
    tokenizer: Callable[[], Any]
    name: str
    weights: str


_LIBRARIES: list[Any] = []
"""Libraries of declared operators, referenced so that they are not garbage-collected."""
_MISSING = ("nms", "qnms")


def import_torchvision() -> Any:
    """Return the module ``torchvision``; declare its operators if the compiled ones cannot be loaded.

    Declared operators have no code: transforms, models and `box_iou` work, ``torchvision.ops.nms`` fails when called.
    With a torchvision that fits its torch this is a plain import. A second call changes nothing.

    Raises
    ------
    ImportError
        torchvision or torch is not installed.
    RuntimeError
        It cannot be imported for another reason.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if _LIBRARIES or "torchvision::nms does not exist" not in str(error):
            raise
    _declare()
    return importlib.import_module("torchvision")


def _declare() -> None:
    torch: Any = importlib.import_module("torch")
    # "FRAGMENT" is allowed beside another declaration of the namespace; "DEF" may not.
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in _MISSING:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _LIBRARIES.append(library)


def import_open_clip() -> Any:
    """Return the module ``open_clip``.

    Raises
    ------
    MissingExtraError
        torch, torchvision or open_clip is not installed.
    """
    try:
        # open_clip imports torchvision, which needs help beside some builds of torch.
        import_torchvision()
        import open_clip
    except ImportError:
        raise MissingExtraError(
            "Encoding with CLIP needs torch, torchvision and open_clip",
            hint=f"{install_command('clip')}; or --encoder colour, which needs neither",
        ) from None
    return open_clip


def load_model(model: str, pretrained: str = "", *, random_weights: int | None = None) -> LoadedModel:
    """Return a model of open_clip with its weights.

    Parameters
    ----------
    model : str
        A name that open_clip knows (``ViT-B-32``); ``local-dir:DIR`` with ``open_clip_config.json``; or
        ``hf-hub:ORG/NAME``, which has weights too.
        Both are refused if their configuration has fields that open_clip does not know, as it passes them on to
        libraries that may run code of the folder (``trust_remote_code``).
    pretrained : str
        A tag that open_clip knows for the model (fetched by open_clip), or a weights file: a state dict (``.pt``), one
        under ``state_dict`` (names may begin with ``module.``), or ``.safetensors``. Files are read as weights only.
    random_weights : int, optional
        Seed of random weights, for tests and for measuring speed.

    Raises
    ------
    MissingExtraError
        open_clip is not installed.
    EncoderError, MissingFileError
        The model is unknown, no weights are named, they cannot be fetched or read, or do not fit the model.
    """
    open_clip = import_open_clip()
    if pretrained and random_weights is not None:
        raise EncoderError("Both weights and random weights are requested", where=f"--pretrained {pretrained}")
    name = _name_of(open_clip, model)
    tag = pretrained if ":" not in model and open_clip.get_pretrained_cfg(model, pretrained) else ""
    if tag:
        _require_same_activation(open_clip, model, tag)
    path = None if random_weights is not None else _weights_file(open_clip, model, pretrained, tag)
    built, preprocess = _built(open_clip, model, tag, random_weights)
    if path is None:
        digest = hashlib.sha256()
        for parameter, tensor in sorted(built.state_dict().items()):
            digest.update(f"{parameter} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
            digest.update(tensor.contiguous().numpy().tobytes())
        weights = f"random:{random_weights}:sha256:{digest.hexdigest()}"
    else:
        weights = sha256_of_file(path)
        _fill(open_clip, built, path)
    return LoadedModel(built.eval(), preprocess, lambda: _tokenizer(open_clip, model), name, weights)


def _tokenizer(open_clip: Any, model: str) -> Any:
    # Read again, as open_clip does.
    _checked_configuration(open_clip, model)
    text = (open_clip.get_model_config(model) or {}).get("text_cfg", {})
    with _without_foreign_code():
        return open_clip.get_tokenizer(model, **({"trust_remote_code": False} if text.get("hf_tokenizer_name") else {}))


def _name_of(open_clip: Any, model: str) -> str:
    """Return the name of a model in an identity; that of a folder includes the digest of its configuration."""
    configuration = _checked_configuration(open_clip, model)
    if configuration is not None and model.startswith(LOCAL_FOLDER):
        digest = sha256_of_bytes(json.dumps(configuration, sort_keys=True).encode())
        return f"{Path(model.removeprefix(LOCAL_FOLDER)).absolute().name}@{digest}"
    name = model if ":" in model else model.replace("/", "-")
    if not model.startswith(HUB) and name not in open_clip.list_models():
        near = difflib.get_close_matches(model, open_clip.list_models(), n=3, cutoff=0.4)
        raise EncoderError(
            "Unknown open_clip model",
            where=f"--model {model[:120]}",
            expected=f"one of its {len(open_clip.list_models())} names, local-dir:DIR, or hf-hub:ORG/NAME",
            hint=f"--model {near[0]}" if near else None,
        )
    return name


class _Model(msgspec.Struct):
    embed_dim: int
    vision_cfg: dict[str, Any]
    text_cfg: dict[str, Any]


class _Config(msgspec.Struct):
    model_cfg: _Model


_ARGUMENTS = {
    "tokenizer_kwargs": {"clean", "language", "strip_sep_token"},
    "act_kwargs": {"approximate"},
    "norm_kwargs": {"eps"},
}
"""Arguments that a configuration may pass to the libraries of open_clip; others could run code."""
_NAMES = {
    "hf_model_name": re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?"),
    "hf_tokenizer_name": re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?"),
    "timm_model_name": re.compile(r"[A-Za-z0-9][\w.-]*"),
}
"""Names that a configuration may contain: models of the hub and of timm, but no folder."""


def _checked_configuration(open_clip: Any, model: str) -> dict[str, Any] | None:
    """Return the configuration of a folder or of the hub, None for a model of open_clip's own.

    Raises
    ------
    EncoderError
        It cannot be fetched, is malformed, or has a field that open_clip does not know.
    """
    if model.startswith(LOCAL_FOLDER):
        path = Path(model.removeprefix(LOCAL_FOLDER)) / _CONFIG_FILE
    elif model.startswith(HUB):
        try:
            with _silence():
                download = open_clip.factory.download_pretrained_from_hf
                path = Path(download(model.removeprefix(HUB), filename=_CONFIG_FILE))
        # Whatever the hub's client raises.
        except Exception as error:
            hint = "download the model where there is a network, and name its folder: --model local-dir:DIR"
            _refuse("The model configuration cannot be fetched", f"--model {model}", error, hint)
    else:
        return None
    data, expected = read_bytes(path, kind="model configuration"), "model_cfg with embed_dim, vision_cfg, text_cfg"
    decode_json(data, _Config, EncoderError, "Malformed model configuration", where=str(path), expected=expected)
    configuration: dict[str, Any] = json.loads(data)
    _require_known(configuration, _known_fields(open_clip), str(path))
    return configuration


def _known_fields(open_clip: Any) -> dict[str, set[str]]:
    """Return the fields of each table of a configuration, by its name; ``""`` for the configuration itself."""
    from inspect import signature

    from open_clip.coca_model import CoCa, MultimodalCfg
    from open_clip.transform import PreprocessCfg

    towers = {
        "vision_cfg": open_clip.CLIPVisionCfg,
        "text_cfg": open_clip.CLIPTextCfg,
        "multimodal_cfg": MultimodalCfg,
        "preprocess_cfg": PreprocessCfg,
    }
    models = {*signature(open_clip.CLIP).parameters, *signature(CoCa).parameters, "custom_text"}
    return {
        "": {"model_cfg", "preprocess_cfg"},
        "model_cfg": models,
        **{name: set(kind.__dataclass_fields__) for name, kind in towers.items()},
        **_ARGUMENTS,
    }


def _require_known(
    table: dict[str, Any], known: dict[str, set[str]], where: str, parents: tuple[str, ...] = ()
) -> None:
    fields = known[parents[-1] if parents else ""]
    for key, value in table.items():
        path = (*parents, key)
        if key not in fields or "remote_code" in key:
            message, value_text = "Unsupported field of a model configuration", None
            expected = ", ".join(sorted(fields))
        elif isinstance(value, dict):
            if key in known:
                _require_known(value, known, where, path)
                continue
            message, value_text, expected = "Malformed model configuration", "an object", "a plain value"
        elif key in _NAMES and value and not (isinstance(value, str) and _NAMES[key].fullmatch(value)):
            message, value_text = "Malformed model configuration", ascii(value)
            expected = "the name of a model, no folder"
        else:
            continue
        raise EncoderError(
            message,
            where=f"{where}: {'.'.join(path)[:200]}",
            expected=expected[:400],
            found=value_text and value_text[:80],
            hint="remove the field, in a copy of the folder that --model local-dir:DIR names; a model that needs "
            "extra code is not loaded",
        )


def _built(open_clip: Any, model: str, tag: str, seed: int | None) -> tuple[Any, Any]:
    import torch

    try:
        # The random state of the caller is restored.
        with _silence(), _without_foreign_code(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed or 0)
            built, _, preprocess = open_clip.create_model_and_transforms(
                model, pretrained=tag or None, load_weights=False, pretrained_text=False, device="cpu"
            )
    # open_clip and timm raise errors of any kind on inconsistent configurations.
    except Exception as error:
        _refuse("The model cannot be built", f"--model {model}", error)
    return built, preprocess


def _weights_file(open_clip: Any, model: str, pretrained: str, tag: str) -> Path:
    if tag or model.startswith(HUB):
        try:
            with _silence():
                path = (
                    open_clip.download_pretrained(open_clip.get_pretrained_cfg(model, tag))
                    if tag
                    else open_clip.pretrained.download_pretrained_from_hf(model.removeprefix(HUB))
                )
            return Path(path)
        # Whatever the hub's client raises: no network, no such repository, no permission, a full disk.
        except Exception as error:
            hint = "fetch the file where there is a network, and name it: --pretrained FILE"
            _refuse("The weights cannot be fetched", f"--model {model} --pretrained {tag}", error, hint)
    if Path(pretrained).is_file():
        return Path(pretrained)
    tags = open_clip.list_pretrained_tags_by_model(model)
    raise MissingFileError(
        "No such weights: neither a tag of this model nor a file" if pretrained else "No weights are named",
        where=f"--model {model}" + (f" --pretrained {pretrained[:200]}" if pretrained else ""),
        expected=", ".join([*tags[:_SHOWN], *(["…"] if len(tags) > _SHOWN else []), "or a file"]),
        hint="--pretrained TAG or FILE; --set random_weights=SEED to measure speed",
    )


def _require_same_activation(open_clip: Any, model: str, tag: str) -> None:
    """Refuse weights that were trained with another activation: the vectors would be wrong without an error."""
    trained = bool(open_clip.get_pretrained_cfg(model, tag).get("quick_gelu", False))
    if trained != bool(open_clip.get_model_config(model).get("quick_gelu", False)):
        other = f"{model}-quickgelu" if trained else model.removesuffix("-quickgelu")
        raise EncoderError(
            "The weights were trained with another activation (QuickGELU) than the model has",
            where=f"--model {model} --pretrained {tag}",
            hint=f"--model {other} --pretrained {tag}",
        )


def _fill(open_clip: Any, model: Any, path: Path) -> None:
    """Load weights into a model."""
    try:
        with _silence(), _without_foreign_code():
            result = open_clip.load_checkpoint(model, str(path), strict=False, weights_only=True)
    # torch, pickle and safetensors raise errors of any kind on other files.
    except Exception as error:
        _refuse("The weights cannot be read, or do not fit the model", str(path), error)
    absent = [key for key in getattr(result, "missing_keys", ()) if not key.startswith("logit_")]
    unexpected = list(getattr(result, "unexpected_keys", ()))
    if absent or unexpected:
        raise EncoderError(
            "The weights do not fit the model",
            where=str(path),
            expected=f"{len(absent)} more: {', '.join(absent[:3])}" if absent else None,
            found=f"{len(unexpected)} unknown: {', '.join(unexpected[:3])}"[:300] if unexpected else None,
            hint="name the model that the weights were trained for",
        )


def _refuse(message: str, where: str, error: Exception, hint: str | None = None) -> NoReturn:
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    raise EncoderError(
        message, where=where, found="; ".join(lines[:3])[:300] or type(error).__name__, hint=hint
    ) from None


@contextmanager
def _without_foreign_code() -> Iterator[None]:
    """Keep torch from unpickling objects, and transformers from asking at the terminal whether it may run code.

    If torch cannot read weights, open_clip reads them again without the restriction to weights.
    """
    names = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ[names[0]] = "1"
    try:
        transformers: Any = importlib.import_module("transformers.dynamic_module_utils")
    except ImportError:
        transformers = None
    patience = getattr(transformers, "TIME_OUT_REMOTE_CODE", 0)
    if transformers is not None:
        transformers.TIME_OUT_REMOTE_CODE = 0
    try:
        yield
    finally:
        if transformers is not None:
            transformers.TIME_OUT_REMOTE_CODE = patience
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _silence() -> Iterator[None]:
    """Keep open_clip from logging and warning: real problems are checked here and raised."""
    root, before, handlers = logging.getLogger(), logging.root.manager.disable, list(logging.root.handlers)
    # Without a handler, the first message would install one for good.
    root.addHandler(logging.NullHandler())
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
        root.handlers[:] = handlers
