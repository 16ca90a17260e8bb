"""The command line: one file a subcommand, found by the table in ``program``, imported when it is called."""
