"""What runs: claims, run records, sidecars and live transcripts."""
