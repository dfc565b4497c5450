#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The maker of the HTML pages: which words become links, and where they lead."""
import pathlib
import tempfile

import make_html
from testing import contains, equal, main


def pages():
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        (top / "DAT_COLOUR.3").write_text(".SH NAME\nDAT_COLOUR \\- a \\-1 <b>\n")
        (top / "opendat.7").write_text(".SH NAME\nopendat \\- all\n")
        (top / "DAT_RED.3").write_text(".so man3/DAT_COLOUR.3\n")
        (top / "DAT_PALE.3").write_text(".so man3/DAT_COLOUR.3\n")
        made = make_html.Pages(sorted(top.iterdir()))
    made.anchors = {"DAT_COLOUR.3": {"DAT_RED"}, "opendat.7": set()}
    return made


def names__of_pages_and_constants__linked():
    text = "<b>DAT_COLOUR</b>(3) <b>DAT_RED</b>, <b>opendat</b>(7) <b>opendat</b>(3) <b>DAT_PALE</b>"
    equal(pages().linked(text, "dat_paint.3"),
          '<a href="DAT_COLOUR.3.html"><b>DAT_COLOUR</b>(3)</a> '
          '<a href="DAT_COLOUR.3.html#DAT_RED"><b>DAT_RED</b></a>, '
          '<a href="opendat.7.html"><b>opendat</b>(7)</a> <b>opendat</b>(3) '
          '<a href="DAT_COLOUR.3.html"><b>DAT_PALE</b></a>')


def names__in_tags_headings_and_code__left():
    text = "<dt><b>DAT_RED</b></dt><h1><b>DAT_RED</b></h1><pre><b>DAT_RED</b></pre><b>DAT_COLOUR</b>"
    equal(pages().linked(text, "DAT_COLOUR.3"), text)


def index__lists_pages_and_aliases():
    index = pages().index()
    contains(index, '<div data-text="dat_colour a -1 &lt;b&gt;"><dt><a href="DAT_COLOUR.3.html">'
                    'DAT_COLOUR(3)</a></dt>\n<dd>a -1 &lt;b&gt;</dd></div>')
    contains(index, '<li data-text="dat_red"><a href="DAT_COLOUR.3.html#DAT_RED">DAT_RED</a></li>')


def index__names_of_an_object__in_one_group():
    equal(make_html.object_of("dat_srq_create"), "Shared receive queues")
    equal(make_html.object_of("DAT_SRQ_ATTR"), "Shared receive queues")
    equal(make_html.object_of("dat_opendat_peer"), "Extensions of OpenDAT")
    equal(make_html.object_of("dat_strerror"), make_html.OTHERS)
    equal(pages().index().count("<section>"), 2)  # overview and others


def index__filter__fetches_nothing():
    index = pages().index()
    contains(index, '<input type="search" id="filter"')
    for word in ("src=", "http:", "https:", "fetch", "import"):
        assert word not in index, word


if __name__ == "__main__":
    main(list(globals().items()))
