"""The one error for what a person gave us and we cannot take."""


class InputError(ValueError):
    """A refusal in one sentence: what was given, the rule, and what to do instead."""
