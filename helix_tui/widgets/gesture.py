"""Messages that a key or a click caused, as against those that a new state caused."""

from __future__ import annotations

from textual.message import Message


class Gesture(Message):
    """Somebody pressed or clicked something; dropped where the screen that was meant is out of view."""
