#!/usr/bin/env python3
"""picture.py TITLE <CAPTURE >PICTURE: a terminal's screen (`tmux capture-pane -p -e`) as an SVG.

Every cell stands in its own column, so that the picture is right whatever font shows it.
"""
import re
import sys
import unicodedata
from html import escape

WIDE, HIGH, MARGIN, TOP = 8.4, 18, 16, 44
PLAIN, GROUND, BAR = "#d7dae0", "#16181d", "#22252c"
COLOURS = {30: "#4b5263", 31: "#ff6c6b", 32: "#7bc275", 33: "#ecbe7b", 34: "#51afef", 35: "#c678dd", 36: "#46d9ff", 37: "#d7dae0"}
BLOCKS = {"█": 1.0, "▒": 0.5}


def spans(line):
    """The pieces of a line: column, text, colour, whether faint."""
    colour, faint, column, found = PLAIN, False, 0, []
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if not code:
            if piece:
                found.append((column, piece, colour, faint))
            column += sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in piece)
            continue
        # 38;5;N is colour N of the terminal's table, whose first eight are the plain ones.
        plain = re.sub(r"38;5;(\d+)", lambda m: str(30 + int(m.group(1)) % 8), code.group(1))
        for number in (int(part or 0) for part in plain.split(";")):
            if number in (0, 39):
                colour = PLAIN
            if number in (0, 22):
                faint = False
            if number == 2:
                faint = True
            if number in COLOURS:
                colour = COLOURS[number]
    return found


def drawn(row, column, text, colour, faint):
    """One piece: bars as rectangles, words as text at their column."""
    y = TOP + row * HIGH
    opacity = ' opacity="0.55"' if faint else ""
    for part in re.finditer(r"[█▒]+|[^█▒\s]+(?: [^█▒\s]+)*", text):
        x = MARGIN + (column + part.start()) * WIDE
        words = part.group()
        if words[0] in BLOCKS:
            for block in re.finditer(r"█+|▒+", words):
                at = x + block.start() * WIDE
                shade = BLOCKS[block.group()[0]]
                yield (f'<rect x="{at:.1f}" y="{y + 2}" width="{len(block.group()) * WIDE:.1f}" height="{HIGH - 4}" '
                       f'fill="{colour}" opacity="{shade}"/>')
        else:
            length = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in words) * WIDE
            yield (f'<text x="{x:.1f}" y="{y + 13}" fill="{colour}"{opacity} textLength="{length:.1f}" '
                   f'lengthAdjust="spacingAndGlyphs" xml:space="preserve">{escape(words)}</text>')


def main():
    title = sys.argv[1] if len(sys.argv) > 1 else ""
    lines = sys.stdin.read().rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    width = max(map(len, plain), default=0) * WIDE + 2 * MARGIN
    height = TOP + len(lines) * HIGH + MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" '
          f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">')
    print(f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/><rect width="100%" height="32" rx="8" fill="{BAR}"/>')
    print(f'<text x="{MARGIN}" y="21" fill="#8b919d">{escape(title)}</text>')
    for row, line in enumerate(lines):
        for piece in spans(line):
            for element in drawn(row, *piece):
                print(element)
    print("</svg>")


main()
