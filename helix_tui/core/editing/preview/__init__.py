"""What would follow from a plan, found without changing anything."""
