"""HELIX's stages: their table, prompts, delegation and results."""
