"""The seed's orchestration: plans of tasks, workspaces in which they are carried out, and their checks."""
