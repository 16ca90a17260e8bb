"""Everything that works without a screen. Nothing in here imports Textual or Rich."""
