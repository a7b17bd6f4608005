"""Texts that try to become part of a page: one list for the viewer, the reports and the terminal."""

from __future__ import annotations

from itertools import product

CALL = "alert(1)"
EVENTS = {
    "img": "src=x onerror",
    "svg": "onload",
    "body": "onload",
    "input": "autofocus onfocus",
    "details": "open ontoggle",
    "video": "src=x onerror",
    "audio": "src=x onerror",
    "iframe": "onload",
    "marquee": "onstart",
    "select": "autofocus onfocus",
    "textarea": "autofocus onfocus",
    "object": "data=x onerror",
}
# Ways out of an attribute, a comment, a script, a style, a text area or a table, and into a new element.
PREFIXES = ("", '">', "'>", "-->", "</script>", "</style>", "</textarea>", "]]>")
OTHERS = (
    f"<script>{CALL}</script>",
    f"<SCRIPT SRC=data:text/javascript,{CALL}></SCRIPT>",
    f"<scr<script>ipt>{CALL}</scr</script>ipt>",
    f"<a href=javascript:{CALL}>open</a>",
    f"<a href='java\nscript:{CALL}'>open</a>",
    f"[open](javascript:{CALL})",
    f"![image](x'onerror='{CALL})",
    f"<math><mi xlink:href=javascript:{CALL}>x",
    f"<svg><script>{CALL}</script></svg>",
    f"<svg><animate onbegin={CALL} attributeName=x>",
    f"<style>@import 'data:text/css,*{{background:url(javascript:{CALL})}}';</style>",
    f"<link rel=stylesheet href=data:text/css,x onload={CALL}>",
    f"<base href=javascript:{CALL}//>",
    f"<meta http-equiv=refresh content='0;url=javascript:{CALL}'>",
    f"<form action=javascript:{CALL}><button>go",
    f"<template><img src=x onerror={CALL}></template>",
    f"<noscript><p title='</noscript><img src=x onerror={CALL}>'>",
    f"&lt;img src=x onerror={CALL}&gt;",
    f"\\u003cimg src=x onerror={CALL}\\u003e",
    f"%3Cimg%20src%3Dx%20onerror%3D{CALL}%3E",
    f"{{{{constructor.constructor('{CALL}')()}}}}",
    f"${{{CALL}}}",
    f"`${{{CALL}}}`",
    f"';{CALL};//",
    f'";{CALL};//',
    f"\u202e<img src=x onerror={CALL}>",
    f"\x00<img src=x onerror={CALL}>",
    f"<img\x0csrc=x\x0conerror={CALL}>",
    f"__proto__<img src=x onerror={CALL}>",
    "constructor",
    "\x1b]0;title\x07\x1b[2J\x1b[31mred",
    "\x9b31mred",
    '=HYPERLINK("javascript:alert(1)")',
)
PAYLOADS = (*(f"{prefix}<{tag} {event}={CALL}>" for prefix, (tag, event) in product(PREFIXES, EVENTS.items())), *OTHERS)
# Elements and attributes that only a payload would make in a page of the viewer.
FOREIGN_ELEMENTS = (
    "img[src='x'], video, audio, iframe, marquee, object, base, form[action], math, template, svg[onload], "
    "svg script, body[onload], [onerror], [onload], [onfocus], [ontoggle], [onstart], [onbegin], "
    "a[href^='javascript' i]"
)
