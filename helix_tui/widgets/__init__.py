"""The console's widgets: data in, messages out, no I/O and no clock."""
