"""One file a screen: arranges widgets, turns keys into calls to core, holds no rule of the field."""
