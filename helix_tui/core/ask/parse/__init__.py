"""From a file's text to chunks, definitions, headings and imports."""
