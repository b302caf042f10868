"""One untrusted image file, decoded to grey or RGB within limits."""

import io
from typing import TYPE_CHECKING

import numpy as np

from appca.data.readers.source import ReadLimits
from appca.words.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")  # no format that runs programs


class NotAnImageError(Exception):
    """The bytes are no image of a known format."""


def decode(data: bytes, name: str, size: tuple[int, int] | None, limits: ReadLimits) -> np.ndarray:
    """Decode an image; upright as its maker held it, transparent parts black, first frame only.

    It is uint8, (h, w) when the image has no colour, else (h, w, 3), stretched to `size` (h, w) if
    one is given; `name` is for sentences. Raises NotAnImageError when nothing can be decoded, and
    InputError when the image has more pixels than allowed.
    """
    from PIL import Image, ImageOps

    too_big = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            _check_pixels(image.size, name, limits)
            plain = _plain(ImageOps.exif_transpose(image))
    except InputError:
        raise
    except too_big as error:
        most = limits.pixels / 1e6
        msg = f"“{name}” has far more than {most:,.0f} million pixels; make it smaller."
        raise InputError(msg) from error
    except Exception as error:  # decoders fail in as many ways as there are formats
        raise NotAnImageError(name) from error
    if size is not None and plain.size != (size[1], size[0]):
        plain = plain.resize((size[1], size[0]), Image.Resampling.LANCZOS)
    return np.asarray(plain)


def grey(pixels: np.ndarray) -> np.ndarray:
    """Return luminance (h, w) of an image; grey stays as it is."""
    from PIL import Image

    return pixels if pixels.ndim == 2 else np.asarray(Image.fromarray(pixels).convert("L"))


def _check_pixels(size: tuple[int, int], name: str, limits: ReadLimits) -> None:
    width, height = size
    if 4 * width * height > limits.n_bytes:  # colours and opacity, as it is unpacked
        msg = (
            f"“{name}” unpacks to {width:,} x {height:,} pixels in {4e-6 * width * height:,.0f} "
            f"MB, more than {limits.most}; make it smaller."
        )
        raise InputError(msg)
    if width * height > limits.pixels:
        msg = (
            f"“{name}” has {width:,} x {height:,} pixels, more than "
            f"{limits.pixels / 1e6:,.0f} million; make it smaller."
        )
        raise InputError(msg)


def _plain(image: "Image.Image") -> "Image.Image":
    """Bring any mode to L or, where there is colour, RGB."""
    from PIL import Image

    if image.mode in ("L", "1"):
        return image.convert("L")
    if image.mode.startswith("I;16") or image.mode == "I":  # 16-bit grey: keep the upper byte
        return Image.fromarray((np.asarray(image).clip(0, 65535) >> 8).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "P"):
        opaque = image.convert("RGBA")
        image = Image.new("RGBA", image.size, (0, 0, 0, 255))
        image.alpha_composite(opaque)  # in place: a large picture is held as seldom as can be
        del opaque
    image = image.convert("RGB")
    red, green, blue = (np.asarray(image.getchannel(band)) for band in range(3))
    coloured = not (np.array_equal(red, green) and np.array_equal(green, blue))
    return image if coloured else image.convert("L")
