"""Helix Ask: a question to the repository, answered from evidence.

Retrieval is behind one object, the index of one tree::

    index = open_index(project)               # the work tree; open_index(project, "v1.2") a revision
    index.refresh(progress, stop=…)           # lists, reads what is new; questions see files as they arrive
    index.search(question, spans=60)          # files best first with each channel's part, and spans
    index.definitions(name), .definitions_in(file), .uses(name)
    index.headings(terms), .headings_in(file), .trees(), .commits(text, most)
    index.take_records(…), .search_records(question, most)
    index.lines(file, start, end), .documents(), .skipped()

A question is a text or the `Question` that `read_question` makes of it. Every list comes in an order that depends on
the tree and the question alone. Everything runs git or SQLite: call it from a worker, never from the UI thread.
"""
