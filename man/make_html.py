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
SECTIONS = {"7": "Overview", "1": "Tools", "5": "Files"}
# The objects, and the second words of the names that belong to each: dat_ep_create, DAT_EP_ATTR.
OBJECTS = {
    "Adapters and the registry": "ia provider registry name ro named",
    "Protection zones and memory": "pz lmr rmr mem region shared va memory vlen vaddr length padding",
    "Event dispatchers (EVD), notification objects (CNO) and events":
        "evd cno event events async asynch software os agent upcall timeout queue notification",
    "Connections": "psp rsp sp cr conn connect connection close port qos multipath sock ia_address af psps",
    "Endpoints": "ep",
    "Transfers": "dto completion iov optimal segment return_dto",
    "Shared receive queues": "srq hw sw watermark",
    "Extensions of OpenDAT": "opendat cxx",
}
OTHERS = "General: return codes, handles, numbers"
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
#filter { font-size: 1.1em; width: 100%; }
[hidden] { display: none; }
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
# Shows what has all words of the filter, and the groups that are not empty then. The words may be given in
# the address, too: index.html#srq. Enter opens the first page that is left.
SCRIPT = """\
<script>
const filter = document.getElementById("filter");
function apply() {
	const words = filter.value.toLowerCase().split(/\\s+/).filter(word => word);
	for (const group of document.querySelectorAll("section")) {
		let shown = 0;
		for (const entry of group.querySelectorAll("[data-text]")) {
			entry.hidden = !words.every(word => entry.dataset.text.includes(word));
			shown += !entry.hidden;
		}
		group.hidden = !shown;
	}
}
function preset() {
	filter.value = decodeURIComponent(location.hash.slice(1));
	apply();
}
filter.addEventListener("input", apply);
filter.addEventListener("keydown", event => {
	const first = document.querySelector("section:not([hidden]) [data-text]:not([hidden]) a");
	if (event.key === "Enter" && first)
		location = first.href;
});
window.addEventListener("hashchange", preset);
preset();
</script>
"""


def object_of(name):
    """The heading of the object that a call, type or constant belongs to."""
    words = name.lower().split("_")
    second = "opendat" if words[0] == "opendat" else words[1] if len(words) > 1 else ""
    return next((heading for heading, known in OBJECTS.items() if second in known.split()), OTHERS)


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

    def entry(self, name):
        """A page with its title; the script filters it by its text."""
        stem, number = name.rsplit(".", 1)
        title = html.escape(self.title(name), quote=True)
        text = html.escape(f"{stem} {self.title(name)}".lower(), quote=True)
        return (f'<div data-text="{text}"><dt><a href="{name}.html">{stem}({number})</a></dt>\n'
                f"<dd>{title}</dd></div>")

    def group(self, heading, names, aliases):
        if not names and not aliases:
            return []
        lines = ["<section>", f"<h2>{html.escape(heading)}</h2>"]
        lines += ["<dl>", *map(self.entry, names), "</dl>"] if names else []
        lines += ['<ul class="names">'] if aliases else []
        for name in aliases:
            stem = name.rsplit(".", 1)[0]
            lines.append(f'<li data-text="{stem.lower()}"><a href="{self.address(name)}">{stem}</a></li>')
        return lines + ["</ul>"] * bool(aliases) + ["</section>"]

    def index(self):
        lines = [HEAD, "<h1>OpenDAT manual pages</h1>",
                 '<p><input type="search" id="filter" placeholder="words of a name or a title" autofocus/></p>']
        for section, heading in SECTIONS.items():
            lines += self.group(heading, [name for name in self.real if name.endswith(f".{section}")], [])
        calls = [name for name in self.real if name.endswith(".3")]
        calls.sort(key=lambda name: (name.isupper(), name.lower()))  # calls before types
        for heading in [*OBJECTS, OTHERS]:
            names = [name for name in calls if object_of(name.rsplit(".", 1)[0]) == heading]
            aliases = [name for name in sorted(self.aliases) if object_of(name.rsplit(".", 1)[0]) == heading]
            lines += self.group(heading, names, aliases)
        return "\n".join(lines + [SCRIPT + "</body>", "</html>", ""])


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
