"""Running work: claims, run records, sidecars and live transcripts."""
