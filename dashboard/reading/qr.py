"""An address as a picture that cameras read (QR code, ISO/IEC 18004)."""

from django.utils.safestring import SafeString, mark_safe

# modules of white around it, which cameras need
BORDER = 2


def code_of(address: str) -> SafeString:
    """The picture as SVG, dark on white by day and night; empty for no address, and where segno is not installed."""
    try:
        # part of the extra `server`; a farm that was upgraded without its dependencies shows the link alone
        import segno
    except ImportError:
        return SafeString()
    if not address:
        return SafeString()
    drawn: str = segno.make(address, micro=False).svg_inline(border=BORDER, dark="#000", light="#fff", omitsize=True)
    return mark_safe(drawn.replace("<svg ", '<svg role="img" aria-label="The link as a QR code" ', 1))
