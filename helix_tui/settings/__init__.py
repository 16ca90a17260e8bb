"""What a person sets and what the console keeps for them: settings, saved views, layout."""
