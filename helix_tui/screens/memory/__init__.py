"""What the Memory screen is made of: the open memory behind it, what it lists, what it changes."""
