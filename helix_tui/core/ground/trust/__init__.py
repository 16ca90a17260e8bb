"""What of a repository is believed: its git folders, folders of ours in it, what this person allowed."""
