"""Which files a question is asked of: listed by git, sifted by path and by content."""
