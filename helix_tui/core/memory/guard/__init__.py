"""What may be shown: secrets, forms that pose, and hidden text in the texts of the memory."""
