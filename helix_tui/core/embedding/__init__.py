"""Embed texts as vectors: all-MiniLM-L6-v2, with or without torch, never over the network.

The interface for other rooms, in `minilm` and `weights` (stable; fields and functions may be added)::

    loaded = load_encoder()            # Loaded(encoder, mode, detail); takes < 1 s, never raises
    loaded.encoder                     # an Encoder, or None
    loaded.mode                        # "semantic" or "keyword"
    loaded.detail                      # one sentence: which encoder on which weights, or why there is none

    encoder.model_id                   # vectors of different ids are never compared
    encoder.encode(["text", …])        # float32, shape (n, 384), rows of length 1
    encoder.encode_apart(["text", …])  # the same, to the last bit as if each were alone

Both encoders here run the same weights and carry the same ``model_id``: their vectors are equal to three
decimals (tests/semantic). ``HELIX_EMBEDDER`` chooses: ``auto`` (the default: sentence-transformers where it is
installed, else light), ``light``, ``sentence-transformers``, ``off``. ``HELIX_MODEL_DIR`` names a folder with
the weights.
"""
