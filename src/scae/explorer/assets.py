"""The page's own files, read once when the server starts."""

from importlib.resources import files

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def read_assets() -> dict[str, tuple[str, bytes]]:
    """Address to kind and content of every file of the page; `/` is index.html."""
    found = {}
    for file in files("scae.explorer").joinpath("page").iterdir():
        kind = KINDS.get(f".{file.name.rpartition('.')[2]}")
        if kind is not None:
            address = "/" if file.name == "index.html" else f"/{file.name}"
            found[address] = (kind, file.read_bytes())
    return found
