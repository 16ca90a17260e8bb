"""What can be looked at: data in, messages out, no I/O, no clock of its own."""
