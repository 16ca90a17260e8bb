"""What may be stored, shown and injected: secrets, orders, harm."""
