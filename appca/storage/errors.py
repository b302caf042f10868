"""The one error for what a person gave us and we cannot take, and a sentence for too much."""

from typing import Any

# for a MemoryError, wherever a person reads of it
TOO_MUCH = "This needs more memory than there is; take fewer rows or fewer features."


class InputError(ValueError):
    """A refusal in one sentence: what was given, the rule, and what to do instead.

    Parameters
    ----------
    message : str
        The sentence.
    report : dict or None
        What was found in a file before it was refused (see `appca.data.readers.read`), so that a
        page can show it beside the sentence.
    """

    def __init__(self, message: str, report: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report
