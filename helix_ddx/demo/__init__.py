"""The throw-away project that the demo opens."""
