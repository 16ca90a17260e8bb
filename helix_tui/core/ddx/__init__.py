"""The boundary with DDx: names, client, live runs, attempts, evidence."""
