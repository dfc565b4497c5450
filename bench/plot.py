# SPDX-License-Identifier: BSD-2-Clause
"""Plots as SVG, with the standard library only."""
import math
from xml.sax.saxutils import escape

COLOURS = ("#1f4e9c", "#c8501e", "#4a8c3f", "#7a4fa0")
WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 150, 40, 50


def text_of(number):
    """A short text for a size in bytes."""
    for shift, unit in ((20, "Mi"), (10, "Ki")):
        if number >= 1 << shift and number % (1 << shift) == 0:
            return f"{number >> shift} {unit}"
    return str(number)


class Picture:
    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
                      f'<rect width="{width}" height="{height}" fill="white"/>']
        self.text(LEFT, 24, title, size=15)

    def text(self, x, y, text, anchor="start", size=12, colour="#222"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
                          f'fill="{colour}">{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, colour="#ddd", width=1, dash=""):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dash}"/>')

    def dot(self, x, y, colour, radius=3.0, opacity=1.0):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" '
                          f'fill-opacity="{opacity}"/>')

    def path(self, points, colour):
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{text}" fill="none" stroke="{colour}" '
                          'stroke-width="2"/>')

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.parts + ["</svg>\n"]))


def decades(low, high):
    """The powers of ten from the one below `low` to the one above `high`."""
    first = math.floor(math.log10(low))
    return list(range(first, max(math.ceil(math.log10(high)), first + 1) + 1))


def lines(path, title, unit, series):
    """A line for each name over sizes, both axes logarithmic. series: {name: {size: value}}"""
    series = {name: points for name, points in series.items() if points}
    values = [value for points in series.values() for value in points.values() if value > 0]
    sizes = sorted({size for points in series.values() for size in points})
    if not values:
        return
    ticks = decades(min(values), max(values))
    picture = Picture(WIDTH, HEIGHT, title)

    def x_of(size):
        span = math.log2(sizes[-1] / sizes[0]) or 1
        return LEFT + math.log2(size / sizes[0]) / span * (WIDTH - LEFT - RIGHT)

    def y_of(value):
        share = (math.log10(value) - ticks[0]) / (ticks[-1] - ticks[0])
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    for tick in ticks:
        picture.line(LEFT, y_of(10 ** tick), WIDTH - RIGHT, y_of(10 ** tick))
        picture.text(LEFT - 8, y_of(10 ** tick) + 4, f"{10 ** tick:g}", "end")
    for size in sizes:
        picture.line(x_of(size), TOP, x_of(size), HEIGHT - BOTTOM)
        picture.text(x_of(size), HEIGHT - BOTTOM + 18, text_of(size), "middle")
    picture.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "bytes", "middle")
    picture.text(LEFT - 8, TOP - 8, unit, "end")
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        picture.path([(x_of(size), y_of(points[size])) for size in sorted(points)], colour)
        for size, value in points.items():
            picture.dot(x_of(size), y_of(value), colour)
        picture.line(WIDTH - RIGHT + 16, TOP + 20 * number + 8, WIDTH - RIGHT + 40,
                     TOP + 20 * number + 8, colour, 2)
        picture.text(WIDTH - RIGHT + 46, TOP + 20 * number + 12, name)
    picture.save(path)


def rounds(path, title, rows):
    """A strip for each row, a dot for each round. rows: (name, [goodness of a round], goodness)

    Goodness 1 is the goal and more is better, also for figures of which less is better.
    """
    rows = [(name, values, whole) for name, values, whole in rows if values and whole]
    if not rows:
        return
    left, width, step = 330, 860, 26
    height = TOP + BOTTOM + step * len(rows)
    everything = [value for _, values, whole in rows for value in [*values, whole, 1]]
    low, high = math.log2(min(everything)) - 0.2, math.log2(max(everything)) + 0.2
    picture = Picture(width, height, title)

    def x_of(value):
        return left + (math.log2(value) - low) / (high - low) * (width - left - 30)

    for power in range(math.ceil(low), math.floor(high) + 1):
        picture.line(x_of(2 ** power), TOP, x_of(2 ** power), height - BOTTOM + 6)
        picture.text(x_of(2 ** power), height - BOTTOM + 22, f"{2.0 ** power:g}", "middle")
    picture.line(x_of(1), TOP, x_of(1), height - BOTTOM + 6, "#333", 2)
    picture.text((left + width) / 2, height - 8, "result relative to the goal (more is better)", "middle")
    for number, (name, values, whole) in enumerate(rows):
        y = TOP + step * (number + 0.5)
        colour = COLOURS[2] if whole >= 1 else COLOURS[1]
        picture.text(left - 12, y + 4, name, "end")
        for value in values:
            picture.dot(x_of(value), y, colour, 3, 0.5)
        picture.dot(x_of(whole), y, colour, 5.5)
    picture.save(path)
