"""What dynid raises when the input, not the program, is at fault."""

__all__ = ["DataError", "DynidError", "ModelError"]


class DynidError(Exception):
    """Base of all errors a user can cause; the message says what, where and what to do, on one line."""

    def __init__(self, message: str) -> None:
        # Names in files may hold line breaks; they must not break the line of the message.
        super().__init__(" ".join(message.split()))


class ModelError(DynidError):
    """A robot description that cannot be used."""


class DataError(DynidError):
    """Arrays or files of the wrong shape or with unusable values."""
