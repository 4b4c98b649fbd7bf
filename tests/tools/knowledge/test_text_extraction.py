"""The text of HTML pages, also of broken ones, in a time that grows with their length only."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.tools.knowledge.text_extraction import MAX_SECONDS, read_html


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>One<p>Two", "\nOne\nTwo"),
        ("<P CLASS=x>One</P >Two", "\nOne\nTwo"),
        ("1 < 2, 3 > 2 & <3 &lt;b&gt; &#65;&#x42;&eacute", "1 < 2, 3 > 2 & <3 <b> ABé"),
        # A ">" within quotes, unquoted values with quotes in them, and quotes that aren't closed.
        ("""a<i title="x>y" alt='>' checked>b</i>c""", "abc"),
        ("a<i title=x\"y>b<i a=>c<i =b>d<i a = 'x>'>e", "abcde"),
        ('a<i title="x>b', "ab"),
        ("a<i/>b<br/>c<i / >d", "ab\ncd"),
        # Comments and declarations.
        (
            "<!DOCTYPE html>a<!-- <p>b --> --c<!-->d<!--->e<!----!>f<?xml ?>g</>h</ p></é>i<![CDATA[j]]>k",
            "a --cdefghik",
        ),
        ("a<script>if (a</b>1) '<p>'</script >b<style>p > i {}</style>c<script src='x'/>d", "abcd"),
        ("a<noscript>b<p>c</noscript>d<svg><p>e</svg >f<template>g", "a\nd\nf"),
        # What the page breaks off in.
        ("a<p", "a"),
        ("a<p b='c", "a"),
        ("a<!-- b>c", "a"),
        ("a<script>b", "a"),
        ("a</", "a"),
        ("a<", "a<"),
        ("a&#" + "9" * 5000 + ";b&#x" + "f" * 5000, "a\ufffdb\ufffd"),
        ("<table><tr><td>a<td>b<tr><th>c</table>", "\n\na b\nc\n"),
        ("<h1>a</h1><h2>b", "\n\n# a\n\n## b"),
    ],
)
def test_the_visible_text_of_a_page(page: str, text: str) -> None:
    assert read_html(page.encode()) == text


@given(st.lists(st.sampled_from([*"<>/!?-='\" &#;x\n", "a", "script", "</script", "<!--", "&#9", "h1"])).map("".join))
def test_any_page_can_be_read(page: str) -> None:
    read_html(page.encode())


@pytest.mark.long
@pytest.mark.parametrize(
    "piece",
    [
        *("<a ", "<a", "<a b", "<a b=", "<a b='", '<a b="', "<a b=\"'", "<a/", "</a", "</", "<!", "<!-", "<!--", "<?"),
        *("<a b=c ", "=", "<a =", "<script>", "</script", "<script><!--", "<svg>", "<a>", "<p>", "&", "&#", "&#9"),
        *("&#x", "&amp", " ", "\n", "<p> ", "<", "<<a ", "--!", "]]", "a"),
    ],
)
def test_the_time_grows_with_the_length(piece: str) -> None:
    def seconds(length: int) -> float:
        page = (piece * (length // len(piece))).encode()
        began = time.thread_time()
        read_html(page)
        return time.thread_time() - began

    # A busy machine may disturb one measurement, and it takes many to disturb all.
    short, long = math.inf, math.inf
    for _ in range(20):
        short, long = min(short, seconds(100_000)), min(long, seconds(400_000))
        if long <= max(8 * short, 0.005) and 5 * 1024 * 1024 / 400_000 * long < MAX_SECONDS / 2:
            return
    pytest.fail(f"{short} s for 100,000 characters, {long} s for four times as many")
