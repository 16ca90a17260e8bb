"""The bead record, the graph, readiness of both eras with reasons. Knows nobody."""
