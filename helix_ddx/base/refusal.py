"""Why a command was not done."""


class Refused(Exception):
    """The command cannot be done; the message is DDx's own where DDx has one."""
