"""The embedded tracker: ``ddx bead …`` on the same files, for machines without a ddx."""
