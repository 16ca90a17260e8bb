"""Lines for people and the data behind them, shared by commands."""
