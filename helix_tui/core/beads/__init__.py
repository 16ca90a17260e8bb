"""The bead record, the graph, readiness of both eras with reasons. Imports no other room but `ground`."""
