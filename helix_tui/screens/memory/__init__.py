"""The Memory screen: the open memory behind it, its lists, its changes."""
