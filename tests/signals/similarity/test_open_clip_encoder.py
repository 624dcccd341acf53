"""A tiny model of open_clip: the same vectors as open_clip's own code, from every kind of weights file."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.core.errors import EncoderError, MissingFileError
from curation.signals.similarity.embed import EncoderOptions, embed_photos, photos_of_folder
from curation.signals.similarity.embeddings import open_embeddings
from curation.signals.similarity.encoder import one_core_each
from curation.signals.similarity.open_clip import (
    OpenClipEncoder,
    _checked_configuration,
    import_open_clip,
    load_model,
    open_clip_encoder,
)
from curation.sources.photos import PhotoFolder
from tests.rounding import product_error
from tests.signals.similarity.clip_world import TINY, picture, write_config, write_photos
from tests.signals.similarity.vectors import encode_images

torch = pytest.importorskip("torch")
image_module = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module", autouse=True)
def open_clip() -> Any:
    try:
        return import_open_clip()
    except Exception:
        pytest.skip("open_clip is not installed")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_config(tmp_path_factory.mktemp("config"))


def images(count: int = 3) -> list[Any]:
    return [image_module.fromarray(picture(number, (50, 40))) for number in range(count)]


def test_vectors_are_those_of_open_clips_own_code(config: str) -> None:
    loaded = load_model(config, random_weights=3)
    with torch.inference_mode():
        expected = loaded.model.encode_image(torch.stack([loaded.preprocess(one) for one in images()])).numpy()
    encoder = OpenClipEncoder(loaded)
    np.testing.assert_array_equal(encode_images(encoder, images()), expected)
    assert encoder.dimension == expected.shape[1] == 24


def test_threads_change_no_vector_and_the_callers_threads_stay(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_photos(tmp_path / "p", 21)
    photos = photos_of_folder(PhotoFolder(tmp_path / "p"), "toy")
    recipe = EncoderOptions(model=config, random_weights=3)
    before, vectors = torch.get_num_threads(), []
    for threads in (1, 4):
        monkeypatch.setattr("curation.signals.similarity.embed.cores", lambda threads=threads: threads)
        embed_photos(photos, recipe, tmp_path / str(threads), batch=4)
        vectors.append(open_embeddings(tmp_path / str(threads)).vectors)
        encoder = recipe.open()
        with one_core_each(encoder) as side_by_side:
            assert side_by_side
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == before
    np.testing.assert_array_equal(*vectors)


def test_the_pooled_embedding_is_what_the_projection_takes(config: str) -> None:
    loaded = load_model(config, random_weights=3)
    projection = loaded.model.visual.proj.detach().numpy()
    pooled = open_clip_encoder(config, random_weights=3, embedding="pooled")
    projected = open_clip_encoder(config, random_weights=3)
    found = encode_images(pooled, images())
    assert found.shape == (3, 32)
    exact = found.astype(np.float64) @ projection.astype(np.float64)
    theirs = encode_images(projected, images())
    assert (np.abs(exact - theirs) <= product_error(found, projection)).all()
    # open_clip without a projection gives the same.
    loaded.model.visual.proj = None
    with torch.inference_mode():
        pixels = torch.stack([loaded.preprocess(one) for one in images()])
        np.testing.assert_array_equal(found, loaded.model.visual(pixels).numpy())
    assert pooled.identity.digest != projected.identity.digest
    with pytest.raises(EncoderError, match="does not encode texts"):
        pooled.encode_texts(["cat"])


def test_texts_are_encoded_as_by_open_clip(config: str, open_clip: Any) -> None:
    loaded = load_model(config, random_weights=3)
    tokens = open_clip.SimpleTokenizer(context_length=16)(["a cat", "a zebra"])
    with torch.inference_mode():
        expected = loaded.model.encode_text(tokens).numpy()
    np.testing.assert_array_equal(OpenClipEncoder(loaded).encode_texts(["a cat", "a zebra"]), expected)


def test_a_text_that_would_be_cut_is_refused(config: str) -> None:
    encoder = open_clip_encoder(config, random_weights=3)
    assert encoder.encode_texts(["cat " * 14]).shape == (1, 24)
    with pytest.raises(EncoderError, match="longer than the model reads"):
        encoder.encode_texts(["dog", "cat " * 15])


def test_random_weights_follow_their_seed_and_leave_the_callers_numbers_alone(config: str) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = load_model(config, random_weights=1)
    assert torch.equal(torch.rand(3), expected)
    assert load_model(config, random_weights=1).weights == first.weights
    assert load_model(config, random_weights=2).weights.split(":")[3] != first.weights.split(":")[3]


def saved(folder: Path, state: dict[str, Any], kind: str) -> Path:
    path = folder / ("w.safetensors" if kind == "safetensors" else "w.pt")
    if kind == "safetensors":
        from safetensors.torch import save_file

        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    elif kind == "nested":
        torch.save({"epoch": 3, "state_dict": {f"module.{name}": one for name, one in state.items()}}, path)
    else:
        torch.save(state, path)
    return path


@pytest.mark.parametrize("kind", ["plain", "nested", "safetensors"])
def test_every_kind_of_weights_file_gives_the_same_vectors(config: str, tmp_path: Path, kind: str) -> None:
    from curation.core.canonical import sha256_of_file

    source = load_model(config, random_weights=9)
    path = saved(tmp_path, source.model.state_dict(), kind)
    encoder = open_clip_encoder(config, str(path))
    expected = encode_images(OpenClipEncoder(source), images())
    np.testing.assert_array_equal(encode_images(encoder, images()), expected)
    assert encoder.identity.weights == sha256_of_file(path)
    assert encoder.encode_texts(["cat"]).shape == (1, 24)


def test_weights_that_do_not_fit_are_refused(config: str, tmp_path: Path) -> None:
    state = load_model(config, random_weights=9).model.state_dict()
    fewer = {name: one for name, one in state.items() if name != "visual.proj"}
    with pytest.raises(EncoderError, match="do not fit") as raised:
        load_model(config, str(saved(tmp_path, fewer, "plain")))
    assert "visual.proj" in str(raised.value)
    with pytest.raises(EncoderError, match="do not fit") as raised:
        load_model(config, str(saved(tmp_path, state | {"head.weight": torch.zeros(2)}, "plain")))
    assert "head.weight" in str(raised.value)
    wider = dict(state) | {"visual.proj": torch.zeros(32, 25)}
    with pytest.raises(EncoderError, match="do not fit") as raised:
        load_model(config, str(saved(tmp_path, wider, "plain")))
    assert "size mismatch" in str(raised.value)


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("never",))


@pytest.mark.parametrize("content", [b"", b"no weights", "pickle", "list", "empty"])
def test_files_that_are_no_weights_are_refused(
    config: str, tmp_path: Path, content: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "w.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save({"pickle": Hostile(), "list": [1, 2], "empty": {}}[content], path)
    with pytest.raises(EncoderError, match="cannot be read"):
        load_model(config, str(path))
    assert "never" not in capsys.readouterr().out


def test_models_and_weights_that_are_not_there_are_told(config: str, tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="Unknown open_clip model") as raised:
        load_model("ViT-B32", random_weights=1)
    assert raised.value.hint == "--model ViT-B-32"
    with pytest.raises(MissingFileError, match="No weights are named"):
        load_model(config)
    with pytest.raises(MissingFileError, match="No such weights"):
        load_model(config, str(tmp_path / "none.pt"))
    with pytest.raises(EncoderError, match="random weights"):
        load_model(config, "some.pt", random_weights=1)
    with pytest.raises(MissingFileError):
        load_model(f"local-dir:{tmp_path}", random_weights=1)


def test_weights_of_another_activation_are_refused_before_they_are_fetched() -> None:
    with pytest.raises(EncoderError, match="QuickGELU") as raised:
        load_model("ViT-B-32", "openai")
    assert "ViT-B-32-quickgelu" in str(raised.value.hint)


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"embed_dim": 8}', '{"model_cfg": 3}', "[" * 100_000, '{"model_cfg": {"embed_dim": 8}}']
)
def test_configurations_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "open_clip_config.json").write_text(text)
    with pytest.raises(EncoderError, match="configuration"):
        load_model(f"local-dir:{tmp_path}", random_weights=1)


FOREIGN: list[tuple[str, Any]] = [
    ("text_cfg.tokenizer_kwargs.trust_remote_code", True),
    ("text_cfg.tokenizer_kwargs.trust_remote_code", False),
    ("text_cfg.tokenizer_kwargs.deep", {"trust_remote_code": True}),
    ("text_cfg.tokenizer_kwargs.auto_map", {"AutoTokenizer": ["evil.Tokenizer", None]}),
    ("text_cfg.tokenizer_kwargs.clean", {"trust_remote_code": True}),
    ("text_cfg.hf_model_kwargs", {"trust_remote_code": True}),
    ("text_cfg.hf_trust_remote_code", True),
    ("text_cfg.trust_remote_code", True),
    ("text_cfg.hf_model_name", "../evil"),
    ("text_cfg.hf_model_name", "/evil/tower"),
    ("text_cfg.hf_tokenizer_name", "./evil"),
    ("text_cfg.norm_kwargs.trust_remote_code", True),
    ("vision_cfg.trust_remote_code", True),
    ("vision_cfg.timm_model_name", "hf-hub:evil/model"),
    ("vision_cfg.timm_model_name", "local-dir:/evil"),
    ("multimodal_cfg", {"tokenizer_kwargs": {"trust_remote_code": True}}),
    ("trust_remote_code", True),
]


class _Transformers:
    """Stands for transformers: would run code of the folder where it is told that it may."""

    TIME_OUT_REMOTE_CODE = 15

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.AutoTokenizer = self

    def from_pretrained(self, name: object, **more: Any) -> "_Transformers":
        self.asked.append({"name": str(name), "patience": self.TIME_OUT_REMOTE_CODE, **more})
        return self


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> _Transformers:
    module = _Transformers()
    for name in ("transformers", "transformers.dynamic_module_utils"):
        monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.fixture(params=["local-dir", "hf-hub"])
def named(request: pytest.FixtureRequest, open_clip: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function that gives the name of a model for its configuration, in a folder or on the hub."""

    def fetch(model: str, filename: str | None = None, **_: object) -> str:
        assert model == "lab/model"
        return str(tmp_path / (filename or "open_clip_model.safetensors"))

    def name(**changes: Any) -> str:
        folder = write_config(tmp_path, **changes)
        return folder if request.param == "local-dir" else "hf-hub:lab/model"

    for module in (open_clip.factory, open_clip.pretrained):
        monkeypatch.setattr(module, "download_pretrained_from_hf", fetch)
    return name


@pytest.mark.parametrize(("place", "value"), FOREIGN)
def test_a_configuration_that_asks_for_code_is_refused(
    named: Any, transformers: _Transformers, place: str, value: object
) -> None:
    changes: dict[str, Any] = json.loads(json.dumps(TINY))
    changes["text_cfg"]["hf_tokenizer_name"] = "lab/tokens"
    *tables, key = place.split(".")
    table = changes
    for one in tables:
        table = table.setdefault(one, {})
    table[key] = value
    with pytest.raises(EncoderError, match="model configuration") as refused:
        load_model(named(**changes), random_weights=1)
    assert place in str(refused.value.where)
    assert transformers.asked == []


def test_a_tokenizer_of_the_hub_is_told_to_run_no_code_and_nobody_is_asked(
    named: Any, transformers: _Transformers, tmp_path: Path
) -> None:
    text = {**TINY["text_cfg"], "hf_tokenizer_name": "lab/tokens", "tokenizer_kwargs": {"clean": "lower"}}  # type: ignore[dict-item]
    model = named(text_cfg=text)
    loaded = load_model(model, random_weights=1)
    loaded.tokenizer()
    source = str(tmp_path) if model.startswith("local-dir") else "lab/tokens"
    assert transformers.asked == [{"name": source, "patience": 0, "trust_remote_code": False, "cache_dir": None}]
    assert transformers.TIME_OUT_REMOTE_CODE == 15
    # What changed since is read anew.
    named(text_cfg={**text, "tokenizer_kwargs": {"trust_remote_code": True}})
    with pytest.raises(EncoderError, match="Unsupported field"):
        loaded.tokenizer()
    assert len(transformers.asked) == 1


def test_every_model_of_open_clip_has_a_configuration_that_is_known(open_clip: Any, tmp_path: Path) -> None:
    """As a folder that open_clip wrote for the hub has it."""
    for name in open_clip.list_models():
        content = {"model_cfg": open_clip.get_model_config(name), "preprocess_cfg": {"size": 224, "mean": [0.5] * 3}}
        (tmp_path / "open_clip_config.json").write_text(json.dumps(content))
        assert _checked_configuration(open_clip, f"local-dir:{tmp_path}") == content


def test_weights_that_torch_cannot_read_are_not_unpickled(
    config: str, tmp_path: Path, open_clip: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """open_clip reads weights once more, as whatever they are, where torch raises a TypeError."""
    load, path = torch.load, tmp_path / "w.pt"
    torch.save({"pickle": Hostile()}, path)

    def fails_first(*given: Any, weights_only: bool | None = None, **more: Any) -> Any:
        if weights_only is not None:
            raise TypeError("as an old torch does")
        # The default of torch before 2.6.
        forced = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD") == "1"
        return load(*given, weights_only=forced, **more)

    monkeypatch.setattr(torch, "load", fails_first)
    with pytest.raises(EncoderError, match="cannot be read"):
        load_model(config, str(path))
    assert "never" not in capsys.readouterr().out
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ


def test_devices_and_precisions_that_are_not_there_are_refused(config: str) -> None:
    loaded = load_model(config, random_weights=1)
    with pytest.raises(EncoderError, match="Half precision"):
        OpenClipEncoder(loaded, device="cpu", precision="float16")
    if not torch.cuda.is_available():
        with pytest.raises(EncoderError, match="No GPU"):
            OpenClipEncoder(loaded, device="cuda")
