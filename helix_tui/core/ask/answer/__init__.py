"""From evidence to an answer: compaction, items, tool results, the answer, and the grounding gate."""
