"""What may be shown: secrets, orders, disguises and harm in the texts of the memory."""
