"""The Journal screen."""
