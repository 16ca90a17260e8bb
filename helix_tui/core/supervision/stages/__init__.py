"""HELIX's stages: their table, prompts, delegation, and what they leave."""
