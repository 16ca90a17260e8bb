"""Nothing leaves the memory unread: secrets, orders, disguises and harm in its texts."""
