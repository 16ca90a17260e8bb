"""What is remembered, as rows and as one page: data in, messages out."""
