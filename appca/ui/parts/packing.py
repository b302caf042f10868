"""An uploader of many files that loses none.

Streamlit sends each file by a request of its own, all of them at once, and leaves out of its answer
those that failed: of the 1,440 images of COIL-20, 29 did not arrive, and nothing was said. So many
files are packed in the browser into one zip, and such as come one by one all the same are refused.
"""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from appca.storage.errors import InputError

MOST = 100  # files that are sent one by one; far below the first failure
_packer = st.components.v2.component(
    "appca_packing",
    html='<div class="ca-packing" role="status"></div>',
    css=""".ca-packing { font-size: 0.875rem; opacity: 0.75; }
[class*=st-key-packing-]:has(.ca-packing:empty) { display: none; }
""",
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def uploader(label: str, *, key: str, help: str, folder: bool = False) -> list[UploadedFile]:
    """Draw an uploader of several files, or of a folder, and return what it holds."""
    files = st.file_uploader(
        label, accept_multiple_files="directory" if folder else True, key=key, help=help
    )
    limit = int(st.get_option("server.maxUploadSize")) << 20
    _packer(key=f"packing-{key}", data={"uploader": key, "most": MOST, "limit": limit})
    return files


def check(files: Sequence[UploadedFile]) -> None:
    """Raise InputError when so many files came one by one that some may be missing."""
    if len(files) > MOST:
        msg = (
            f"{len(files):,} files came one by one, and a browser may lose some of more than "
            f"{MOST}; take them out and choose them again, or give one zip of them."
        )
        raise InputError(msg)
