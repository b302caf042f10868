"""What Streamlit 1.67 has to be told before its first run."""

from contextlib import suppress

from streamlit import delta_generator
from streamlit.runtime.pages_manager import PagesManager

MOST_FILES = 1 << 16  # open at once: each visitor takes several


def prepare() -> None:
    """Keep the first run of a process like all others.

    Streamlit runs its old page discovery until the first `st.navigation`, because a folder named
    ``pages`` exists; it does not know our pages, and says of a deep link “Page not found”. And with
    its first element it finds out whether it runs in a console, which opens the files of all
    modules: half a second while they are still being loaded.
    """
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    PagesManager.uses_pages_directory = False
    delta_generator._use_warning_has_been_displayed = True
