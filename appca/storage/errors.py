"""The earlier place of `appca.words.errors`, for programs that catch what appca refuses."""

from appca.words.errors import InputError, MissingExtraError

__all__ = ["InputError", "MissingExtraError"]
