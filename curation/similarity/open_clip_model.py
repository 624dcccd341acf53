"""Models of open_clip with the weights that were asked for, checked, and the digest of these weights."""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from curation.canonical import sha256_of_bytes, sha256_of_file
from curation.errors import EncoderError, MissingExtraError, MissingFileError
from curation.storage import read_bytes

LOCAL_FOLDER, HUB = "local-dir:", "hf-hub:"
_CONFIG_FILE = "open_clip_config.json"
_WEIGHTS = ("*.safetensors", "*.bin", "*.pth", "*.pt")
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
        As in `EncoderIdentity`.
    has_text : bool
        Whether the weights hold a text tower.
    """

    model: Any
    preprocess: Any
    tokenizer: Callable[[], Any]
    name: str
    weights: str
    has_text: bool


def import_open_clip() -> Any:
    """Return the module ``open_clip``.

    Raises
    ------
    MissingExtraError
        torch, torchvision or open_clip is not installed.
    """
    from curation.torchvision_operators import import_torchvision

    try:
        # open_clip imports torchvision, which needs help beside some builds of torch.
        import_torchvision()
        import open_clip
    except ImportError:
        raise MissingExtraError(
            "Encoding with CLIP needs torch, torchvision and open_clip",
            hint="pip install 'curation[clip]'; or --encoder colour, which needs neither",
        ) from None
    return open_clip


def load_model(model: str, pretrained: str = "", *, random_weights: int | None = None) -> LoadedModel:
    """Return a model of open_clip with its weights.

    Parameters
    ----------
    model : str
        A name that open_clip knows (``ViT-B-32``); a configuration file (``.json``, open_clip's own format);
        ``local-dir:DIR`` with ``open_clip_config.json`` and one weights file; or ``hf-hub:ORG/NAME``.
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
    if model.endswith(".json"):
        return _of_config_file(open_clip, Path(model), pretrained, random_weights)
    _require_known(open_clip, model)
    return _load(
        open_clip, model, model.replace("/", "-") if ":" not in model else model, pretrained, random_weights
    )


def _require_known(open_clip: Any, model: str) -> None:
    if model.startswith(LOCAL_FOLDER):
        _read_config(Path(model.removeprefix(LOCAL_FOLDER)) / _CONFIG_FILE)
    elif not model.startswith(HUB) and model.replace("/", "-") not in open_clip.list_models():
        near = difflib.get_close_matches(model, open_clip.list_models(), n=3, cutoff=0.4)
        raise EncoderError(
            "open_clip knows no such model",
            where=f"--model {model[:120]}",
            expected=f"one of its {len(open_clip.list_models())} names, a configuration file, local-dir:DIR, hf-hub:…",
            hint=f"--model {near[0]}" if near else None,
        )


def _of_config_file(open_clip: Any, path: Path, pretrained: str, seed: int | None) -> LoadedModel:
    config = _read_config(path)
    data = json.dumps(config, sort_keys=True).encode()
    # In a folder of its own: open_clip's register of names is shared by the whole process.
    with TemporaryDirectory(prefix="open-clip-") as folder:
        (Path(folder) / _CONFIG_FILE).write_bytes(data)
        name = f"{path.stem}@{sha256_of_bytes(data)}"
        loaded = _load(open_clip, f"{LOCAL_FOLDER}{folder}", name, pretrained, seed)
        made: Any = None
        if loaded.has_text:
            with _silence():
                made = loaded.tokenizer()
    return LoadedModel(
        loaded.model, loaded.preprocess, lambda: made, loaded.name, loaded.weights, loaded.has_text
    )


def _read_config(path: Path) -> dict[str, Any]:
    """Return ``{"model_cfg", "preprocess_cfg"}`` of a configuration file, or of the model's part alone."""
    try:
        found = json.loads(read_bytes(path, kind="model configuration"))
    except (ValueError, RecursionError) as error:
        raise EncoderError(
            "The model configuration is no JSON", where=str(path), found=str(error)[:200]
        ) from None
    if isinstance(found, dict) and "model_cfg" not in found:
        found = {"model_cfg": found}
    model = found.get("model_cfg") if isinstance(found, dict) else None
    needed = ("embed_dim", "vision_cfg", "text_cfg")
    if not isinstance(model, dict) or any(name not in model for name in needed):
        raise EncoderError(
            "The model configuration is not open_clip's", where=str(path), expected=", ".join(needed)
        )
    return {"model_cfg": model, "preprocess_cfg": found.get("preprocess_cfg") or {}}


def _load(open_clip: Any, model: str, name: str, pretrained: str, seed: int | None) -> LoadedModel:
    if pretrained and seed is not None:
        raise EncoderError("Weights are named, and random ones asked for", where=f"--pretrained {pretrained}")
    tag = pretrained if ":" not in model and open_clip.get_pretrained_cfg(model, pretrained) else ""
    if tag:
        _require_same_activation(open_clip, model, tag)
    path = None if seed is not None else _weights_file(open_clip, model, pretrained, tag)
    built, preprocess = _built(open_clip, model, tag, seed)
    has_text = True
    if path is None:
        weights = f"random:{seed}:{_digest_of_state(built)}"
    else:
        weights = sha256_of_file(path)
        has_text = _fill(open_clip, built, path)
    return LoadedModel(
        built.eval(), preprocess, lambda: open_clip.get_tokenizer(model), name, weights, has_text
    )


def _built(open_clip: Any, model: str, tag: str, seed: int | None) -> tuple[Any, Any]:
    import torch

    try:
        # The seed holds inside only: the caller's random numbers go on as if nothing had happened.
        with _silence(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed or 0)
            built, _, preprocess = open_clip.create_model_and_transforms(
                model, pretrained=tag or None, load_weights=False, pretrained_text=False, device="cpu"
            )
    # open_clip and timm raise errors of every kind on configurations that do not hold together.
    except Exception as error:
        _refuse("The model cannot be built", f"--model {model}", error)
    return built, preprocess


def _weights_file(open_clip: Any, model: str, pretrained: str, tag: str) -> Path:
    if tag or model.startswith(HUB):
        try:
            with _silence():
                found = (
                    open_clip.download_pretrained(open_clip.get_pretrained_cfg(model, tag))
                    if tag
                    else open_clip.pretrained.download_pretrained_from_hf(model.removeprefix(HUB))
                )
            return Path(found)
        # Whatever the hub's client raises: no network, no such repository, no permission, a full disk.
        except Exception as error:
            hint = "fetch the file where there is a network, and name it: --pretrained FILE"
            _refuse("The weights cannot be fetched", f"--model {model} --pretrained {tag}", error, hint)
    if pretrained:
        return _named_file(open_clip, model, pretrained)
    if model.startswith(LOCAL_FOLDER) and (found := _only_weights(Path(model.removeprefix(LOCAL_FOLDER)))):
        return found
    raise EncoderError(
        "No weights are named",
        where=f"--model {model}",
        expected="--pretrained TAG or FILE",
        hint=f"--pretrained {_tags(open_clip, model)}; --random-weights SEED to measure speed",
    )


def _named_file(open_clip: Any, model: str, pretrained: str) -> Path:
    path = Path(pretrained)
    if path.is_file():
        return path
    raise MissingFileError(
        "There are no such weights: neither a tag of this model nor a file",
        where=f"--pretrained {pretrained[:200]}",
        expected=_tags(open_clip, model),
    )


def _tags(open_clip: Any, model: str) -> str:
    tags = open_clip.list_pretrained_tags_by_model(model)
    return ", ".join([*tags[:_SHOWN], *(["…"] if len(tags) > _SHOWN else []), "or a file"])


def _only_weights(folder: Path) -> Path | None:
    found = sorted(path for pattern in _WEIGHTS for path in folder.glob(pattern))
    if len(found) > 1:
        raise EncoderError(
            "The folder holds several files of weights",
            where=str(folder),
            found=", ".join(path.name for path in found[:_SHOWN]),
            hint=f"--pretrained {found[0]}",
        )
    return found[0] if found else None


def _require_same_activation(open_clip: Any, model: str, tag: str) -> None:
    """Refuse weights trained with another activation than the model's: the vectors would be wrong, and look right."""
    trained = bool(open_clip.get_pretrained_cfg(model, tag).get("quick_gelu", False))
    if trained != bool(open_clip.get_model_config(model).get("quick_gelu", False)):
        other = f"{model}-quickgelu" if trained else model.removesuffix("-quickgelu")
        raise EncoderError(
            "The weights were trained with another activation (QuickGELU) than the model has",
            where=f"--model {model} --pretrained {tag}",
            hint=f"--model {other} --pretrained {tag}",
        )


def _fill(open_clip: Any, model: Any, path: Path) -> bool:
    """Load weights into a model; return whether they hold a text tower."""
    try:
        with _silence():
            result = open_clip.load_checkpoint(model, str(path), strict=False, weights_only=True)
    # torch, pickle and safetensors raise errors of every kind on files that are not what they should be.
    except Exception as error:
        _refuse("The weights cannot be read, or do not fit the model", str(path), error)
    missing = list(getattr(result, "missing_keys", ()))
    unexpected = list(getattr(result, "unexpected_keys", ()))
    texts = [key for key in model.state_dict() if not key.startswith(("visual.", "logit_"))]
    only_images = bool(texts) and set(texts) <= set(missing)
    absent = [key for key in missing if not (only_images and key in texts) and not key.startswith("logit_")]
    if absent or unexpected:
        raise EncoderError(
            "The weights do not fit the model",
            where=str(path),
            expected=f"{len(absent)} more: {', '.join(absent[:3])}" if absent else None,
            found=f"{len(unexpected)} that it has not: {', '.join(unexpected[:3])}"[:300]
            if unexpected
            else None,
            hint="name the model that the weights were trained for",
        )
    return bool(texts) and not only_images


def _digest_of_state(model: Any) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return f"sha256:{digest.hexdigest()}"


def _refuse(what: str, where: str, error: Exception, hint: str | None = None) -> NoReturn:
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    raise EncoderError(
        what, where=where, found="; ".join(lines[:3])[:300] or type(error).__name__, hint=hint
    ) from None


@contextmanager
def _silence() -> Iterator[None]:
    """Keep open_clip from logging and warning: what matters is checked here and raised."""
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
