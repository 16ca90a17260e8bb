"""What a person should know: drift, orphaned claims, holds, focus, questions, stoppage, conflicting documents."""
