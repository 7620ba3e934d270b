"""The table of all results, in Markdown, and a picture of it."""

import html
import pathlib

from contestants import CONTESTANTS
from faults import FAULTS

HERE = pathlib.Path(__file__).parent
TABLE, PICTURE = HERE / "results.md", HERE.parents[1] / "docs/loss.svg"
# A page that kills, and is asked for oftener than this, is asked for without an end.
ENDLESS = 40
GOOD, FAIR, BAD, NONE = "#d7f0d9", "#fdf0c4", "#f9d3d0", "#f0f0f0"
WIDTH, HEIGHT, MARGIN, HEAD = 124, 58, 168, 40


def write(results):
    TABLE.write_text(table(results))
    PICTURE.write_text(picture(results))


def table(results):
    lines = [
        "# Results of `scripts/loss`", "",
        "Written by it; [docs/loss.md](../../docs/loss.md) says how to read it. Where two rounds differ, both are given.", "",
        "| fault | crawler | lost | again | end | too soon | shortest gap | last page after |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for fault in FAULTS:
        for peer, contestant in CONTESTANTS.items():
            rounds = results.get(peer, {}).get(fault)
            if reason := contestant.without.get(fault):
                lines.append(f"| {FAULTS[fault].title} | {contestant.name} | – | {reason} | | | | |")
            elif rounds:
                lines.append(f"| {FAULTS[fault].title} | {contestant.name} | " + " | ".join((
                    span(rounds, "lost"), again(rounds), span(rounds, "end"), span(rounds, "soon"),
                    span(rounds, "least", " ms"), span(rounds, "seconds", " s", round))) + " |")
    return "\n".join([*lines, "", rounds_alike(results)]) + "\n"


def rounds_alike(results):
    """Where rounds lost differently, or ended differently."""
    cells = [(peer, fault, rounds) for peer, faults in results.items() for fault, rounds in faults.items()
             if len(rounds) > 1]
    unlike = [f"{CONTESTANTS[peer].name}: {FAULTS[fault].title}" for peer, fault, rounds in cells
              if len({(verdict["lost"], verdict["end"]) for verdict in rounds}) > 1]
    return (f"Of {len(cells)} cells that ran more than once, {len(cells) - len(unlike)} lost and ended alike each time"
            + (f"; not so {'; '.join(sorted(unlike))}." if unlike else "."))


def span(rounds, key, unit="", form=str):
    values = dict.fromkeys(str(form(verdict[key])) for verdict in rounds)
    return " or ".join(values) + unit


def again(rounds):
    """Also how often the page that kills was asked for."""
    deaths = max(verdict["deaths"] for verdict in rounds)
    more = ", kills without an end" if deaths > ENDLESS else f", kills {span(rounds, 'deaths')} times" if deaths else ""
    return span(rounds, "again") + more


def picture(results):
    width, height = MARGIN + WIDTH * len(CONTESTANTS) + 8, HEAD + HEIGHT * len(FAULTS) + 28
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for column, contestant in enumerate(CONTESTANTS.values()):
        parts.append(text(MARGIN + WIDTH * (column + 0.5), HEAD - 14, contestant.name, "middle", bold=True))
    for row, (fault, kind) in enumerate(FAULTS.items()):
        top = HEAD + HEIGHT * row
        parts.append(text(MARGIN - 10, top + HEIGHT / 2 + 4, kind.title, "end"))
        for column, peer in enumerate(CONTESTANTS):
            parts += cell(MARGIN + WIDTH * column, top, results.get(peer, {}).get(fault), fault in CONTESTANTS[peer].without)
    legend = "green: nothing lost, and a right end; yellow: nothing lost, but a wrong end or none; red: pages lost; –: cannot happen to it"
    parts.append(text(MARGIN, height - 10, legend, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def cell(left, top, rounds, without):
    middle = left + WIDTH / 2
    if not rounds:
        return [box(left, top, NONE), text(middle, top + HEIGHT / 2 + 4, "–" if without else "?", "middle")]
    lost, ends = reach(rounds, "lost"), dict.fromkeys(verdict["end"] for verdict in rounds)
    colour = BAD if lost != "0" else GOOD if list(ends) == ["right"] else FAIR
    return [
        box(left, top, colour),
        text(middle, top + 19, f"{lost} lost", "middle", bold=lost != "0"),
        text(middle, top + 34, f"{reach(rounds, 'again')} again, {reach(rounds, 'soon')} soon", "middle", size=10),
        text(middle, top + 48, f"end {' or '.join(ends)}", "middle", size=10.5),
    ]


def reach(rounds, key):
    """The least and the greatest value."""
    values = [verdict[key] for verdict in rounds]
    return str(values[0]) if min(values) == max(values) else f"{min(values)}–{max(values)}"


def box(left, top, colour):
    return f'<rect x="{left + 2}" y="{top + 2}" width="{WIDTH - 4}" height="{HEIGHT - 4}" rx="4" fill="{colour}"/>'


def text(x, y, words, anchor, bold=False, size=None):
    more = (' font-weight="bold"' if bold else "") + (f' font-size="{size}"' if size else "")
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="#222"{more}>{html.escape(words)}</text>'
