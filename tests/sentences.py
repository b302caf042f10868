"""The rule for error messages: one sentence with the input, the rule and a remedy."""

import re

_TRACE = re.compile(r"Traceback|Error\b|Exception\b|File \"|<class |object at 0x|\berrno\b", re.I)
_LONGEST = 600  # characters; names from files are shortened


def faults_of(sentence: str, *named: str) -> str:
    """
    Return how a text breaks the rule for error messages; empty if it does not.

    Parameters
    ----------
    sentence : str
    *named : str
        Names of the file or value, one of which must be in the sentence.
    """
    trace = _TRACE.search(_unquoted(sentence))
    rules = {
        "it is empty": not sentence.strip(),
        "it has more than one line": len(sentence.splitlines()) > 1,
        "it has characters that do not print": not _prints(sentence),
        "it ends without a period": not sentence.endswith("."),
        "it has more than one period": re.search(r"[a-z]\. [A-Z]", _unquoted(sentence)) is not None,
        "it says a rule or a remedy nowhere": not re.search(r"[;,(]", sentence),
        f"it reads like a trace ({trace and trace[0]})": trace is not None,
        f"it is longer than {_LONGEST} characters": len(sentence) > _LONGEST,
        f"it names none of {named}": bool(named) and not any(word in sentence for word in named),
    }
    broken = [rule for rule, is_broken in rules.items() if is_broken]
    return f"{'; '.join(broken)}: {sentence[:1000]!r}" if broken else ""


def _unquoted(sentence: str) -> str:
    """Remove quoted text, because names may contain anything."""
    return re.sub(r"“[^”]*”", "“”", sentence)


def _prints(sentence: str) -> bool:
    return all(
        character.isprintable() or character == "\N{ZERO WIDTH JOINER}" for character in sentence
    )
