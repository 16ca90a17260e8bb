"""From evidence to an answer: compaction, items, the tool results, the answer, and the gate it passes."""
