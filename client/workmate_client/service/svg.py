"""A typed name as a small drawing, so that a signature is a file like every other evidence."""

from xml.sax.saxutils import escape

NAME_LIMIT = 500
"""The longest name that a message may carry, in characters."""

_LETTER = 24
_HEIGHT = 96


def draw_name(name: str) -> bytes:
    """Return an SVG 1.1 document that shows the name as a handwritten line."""
    shown = escape("".join(letter if letter.isprintable() else "\ufffd" for letter in name))
    width = _LETTER * (len(name) + 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width} {_HEIGHT}"><title>{shown}</title>'
        f'<text x="{_LETTER}" y="64" font-family="cursive" font-size="40">{shown}</text></svg>\n'
    ).encode()
