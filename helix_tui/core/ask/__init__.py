"""Helix Ask: a question to the repository, answered from evidence.

Retrieval is behind one object, the `Index` of one tree::

    index = open_index(project)               # the work tree; open_index(project, "v1.2") a revision
    index.refresh(progress, stop=…)           # lists, reads what is new; asks see files as they arrive
    index.rank_files(question)                # RankedFile, the whole ranking, best first
    index.search(question, k, per_file=3)     # Span, with every channel's part of its score
    index.definitions(name), .definitions_in(file), .uses(name), .imports(file)
    index.headings(file=None), .tree(), .trees(), .commits(question)
    index.lines(file, start, end), .documents(), .skipped()

A question is a text or the `Question` that `read_question` makes of it. Every list comes in an order that depends on
the tree and the question alone. Everything runs git or SQLite: call it from a worker, never from the UI thread.
"""
