"""Going from place to place, and where ``:`` can go."""
