"""The embedder of record and the light encoder side by side: `make test-semantic`."""
