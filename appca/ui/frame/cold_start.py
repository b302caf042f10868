"""What Streamlit 1.67 has to be told before its first run."""

from streamlit import delta_generator
from streamlit.runtime.pages_manager import PagesManager


def prepare() -> None:
    """Keep the first run of a process like all others.

    Streamlit runs its old page discovery until the first `st.navigation`, because a folder named
    ``pages`` exists; it does not know our pages, and says of a deep link “Page not found”. And with
    its first element it finds out whether it runs in a console, which opens the files of all
    modules: half a second while they are still being loaded.
    """
    PagesManager.uses_pages_directory = False
    delta_generator._use_warning_has_been_displayed = True
