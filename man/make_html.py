#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Render manual pages to HTML with mandoc, and write an index of them.

    make_html.py --mandoc MANDOC --output DIR PAGE-OR-FOLDER...

Each name of a page, and each constant, becomes a link. An alias (.so) has no file of its own: its name
leads to the page that describes it. Fails if a link leads nowhere.
"""
import argparse
import html
import pathlib
import re
import shutil
import subprocess
import sys

ALIAS = re.compile(r"\.so man\d/(\S+)\n")
NAME = re.compile(r'^\.SH NAME\n(?:\S+) \\- (.*)$', re.M)
BOLD = re.compile(r"<b>([\w.]+)</b>(?:\((\d)\))?")
ANCHOR = re.compile(r'\bid="([^"]*)"')
LINK = re.compile(r'href="([^"#]*)(?:#([^"]*))?"')
SECTIONS = {"7": "Overview", "1": "Tools", "5": "Files", "3": "Calls and types"}
STYLE = """\
body { max-width: 60em; margin: 1em auto; padding: 0 1em; font-family: sans-serif; line-height: 1.4; }
pre, code, dt { font-family: monospace; }
table.head, table.foot { width: 100%; color: #555; }
td.head-vol { text-align: center; }
td.head-rtitle, td.foot-os { text-align: right; }
h1 { font-size: 1.2em; }
a { text-decoration: none; }
a.permalink { color: inherit; }
ul.names { columns: 3; list-style: none; padding: 0; font-size: 0.8em; }
dd { margin-bottom: 0.5em; }
"""
HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1.0"/>
<link rel="stylesheet" href="style.css" type="text/css"/>
<title>OpenDAT manual pages</title>
</head>
<body>
"""


def render(mandoc, page):
    run = subprocess.run([mandoc, "-T", "html", "-O", "style=style.css", str(page)], check=True,
                         stdout=subprocess.PIPE, encoding="utf-8")
    return run.stdout.replace("<body>", '<body>\n<p><a href="index.html">All pages</a></p>', 1)


class Pages:
    def __init__(self, paths):
        self.source = {path.name: path.read_text(encoding="utf-8") for path in paths}
        self.aliases = {name: match.group(1) for name, text in self.source.items()
                        if (match := ALIAS.match(text))}
        self.real = sorted(set(self.source) - set(self.aliases), key=str.lower)
        self.anchors = {}  # of each file

    def address(self, name):
        """Where a name with its section, such as DAT_TRUE.3, leads to; None if nowhere."""
        target = self.aliases.get(name)
        if target:
            anchor = name.rsplit(".", 1)[0]
            return f"{target}.html" + (f"#{anchor}" if anchor in self.anchors[target] else "")
        return f"{name}.html" if name in self.source else None

    def linked(self, text, own):
        """The text with links for bold names."""
        def link(match):
            name, section = match.groups()
            address = self.address(f"{name}.{section or 3}")
            if not address or (not section and address == f"{own}.html"):
                return match.group()
            return f'<a href="{address}">{match.group()}</a>'
        # the tag of a list is a link to itself already
        parts = re.split(r"(<dt.*?</dt>|<h1.*?</h1>|<pre>.*?</pre>)", text, flags=re.S)
        return "".join(part if part.startswith(("<dt", "<h1", "<pre")) else BOLD.sub(link, part)
                       for part in parts)

    def title(self, name):
        return NAME.search(self.source[name]).group(1).replace("\\-", "-").replace("\\e", "\\")

    def index(self):
        lines = [HEAD, "<h1>OpenDAT manual pages</h1>"]
        for section, heading in SECTIONS.items():
            lines += [f"<h2>{heading}</h2>", "<dl>"]
            for name in self.real:
                stem, number = name.rsplit(".", 1)
                if number == section:
                    lines += [f'<dt><a href="{name}.html">{stem}({number})</a></dt>',
                              f"<dd>{html.escape(self.title(name))}</dd>"]
            lines.append("</dl>")
        lines += ["<h2>Constants and other names</h2>", '<ul class="names">']
        for name in sorted(self.aliases):
            lines.append(f'<li><a href="{self.address(name)}">{name.rsplit(".", 1)[0]}</a></li>')
        return "\n".join(lines + ["</ul>", "</body>", "</html>", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mandoc", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    paths = [page for path in args.pages
             for page in (sorted(path.glob("*.3")) if path.is_dir() else [path])]
    pages = Pages(paths)
    texts = {path.name: render(args.mandoc, path) for path in paths if path.name in pages.real}
    pages.anchors = {name: set(ANCHOR.findall(text)) for name, text in texts.items()}
    files = {f"{name}.html": pages.linked(text, name) for name, text in texts.items()}
    files["index.html"] = pages.index()
    dead = [f"{name}: the link {page}#{anchor} leads nowhere" for name, text in files.items()
            for page, anchor in LINK.findall(text) if page and page != "style.css" and (
                page not in files or anchor and anchor not in pages.anchors[page[:-len(".html")]])]
    shutil.rmtree(args.output, ignore_errors=True)
    args.output.mkdir(parents=True)
    (args.output / "style.css").write_text(STYLE, encoding="utf-8")
    for name, text in files.items():
        (args.output / name).write_text(text, encoding="utf-8")
    print(f"{len(files)} files in {args.output}")
    print("\n".join(dead), file=sys.stderr, end="\n" * bool(dead))
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
