#!/usr/bin/env python3
"""Fails where a page of the site links to a page, an image or a heading that is not there.

usage: check_links.py FOLDER

Links to other sites are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links of a page, and the anchors in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.names.add(value)
            if (tag, name) in (("a", "href"), ("img", "src")) and value:
                self.links.append(value)


def main():
    root = Path(sys.argv[1]).resolve()
    # print.html repeats all pages; its links are theirs.
    pages = {path: Page(path) for path in root.rglob("*.html") if path.name not in ("print.html", "toc.html", "404.html")}
    broken, links = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            where = f"{path.relative_to(root)}: {link}"
            if not target.exists():
                broken.append(f"{where}: no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                broken.append(f"{where}: no such heading")
    print("\n".join(broken) or f"{links} links of {len(pages)} pages are valid")
    # Fewer links would mean that pages were not parsed correctly.
    sys.exit(1 if broken or links < 100 else 0)


main()
