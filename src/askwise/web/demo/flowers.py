"""Flowers that five numbers describe, as SVG.

A flower is a few rings of petals.  The numbers are the hue and how far it changes from ring to ring, the
number of petals, how slender they are, and how much each ring is turned against the one before.
"""

import math
from typing import Any

_RINGS, _SIZE = 6, 400


def render(setting: dict[str, Any]) -> str:
    """A flower as an SVG picture."""
    hue, spread = float(setting["hue"]), float(setting["spread"])
    petals, slender = int(setting["petals"]), float(setting["slenderness"])
    turn = float(setting["turn"])
    rings = [_ring(ring, hue, spread, petals, slender, turn) for ring in range(_RINGS)]
    ground = hue + 180 + spread / 2
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}">
<defs>
<radialGradient id="ground" cx="50%" cy="42%" r="75%">
<stop offset="0" stop-color="{_colour(ground, 0.10, 0.975)}"/>
<stop offset="1" stop-color="{_colour(ground + 25, 0.20, 0.90)}"/>
</radialGradient>
{"".join(_gradient(ring, hue, spread) for ring in range(_RINGS))}
</defs>
<rect width="{_SIZE}" height="{_SIZE}" fill="url(#ground)"/>
<g transform="translate({_SIZE / 2} {_SIZE / 2})">
<g opacity="0.10" transform="translate(4 9)">{_shadow(petals, slender)}</g>
{"".join(rings)}
{_heart(hue, spread)}
</g>
</svg>"""


def _ring(ring: int, hue: float, spread: float, petals: int, slender: float, turn: float) -> str:
    """The petals of one ring, the outermost first."""
    share = ring / (_RINGS - 1)
    length, angle = _length(share), 360 / petals
    start = ring * (angle / 2 + turn)
    edge = _colour(hue + spread * share, 0.55, 0.34 + 0.18 * share)
    path = _petal(length, length * _breadth(petals, slender))
    each = "".join(
        f'<path d="{path}" transform="rotate({start + angle * petal:.2f})"/>' for petal in range(petals)
    )
    return f'<g fill="url(#ring{ring})" stroke="{edge}" stroke-opacity="0.35" stroke-width="0.8">{each}</g>'


def _shadow(petals: int, slender: float) -> str:
    length = _length(0.0)
    path = _petal(length, length * _breadth(petals, slender))
    return "".join(
        f'<path d="{path}" transform="rotate({360 / petals * one:.2f})"/>' for one in range(petals)
    )


def _length(share: float) -> float:
    """Of a petal, from the outermost ring (0) to the innermost (1)."""
    return 148 * (1 - share) ** 0.85 + 36


def _breadth(petals: int, slender: float) -> float:
    """Of a petal, as a share of its length: petals that touch their neighbours, or are more slender."""
    return min(0.62, 2.3 * math.sin(math.pi / petals)) * (1.12 - 0.8 * slender)


def _petal(length: float, breadth: float) -> str:
    """A petal that points upwards from the middle, with a soft tip."""
    half = breadth / 2
    return (
        f"M0 0C{-half * 1.1:.1f} {-length * 0.28:.1f} {-half * 1.25:.1f} {-length * 0.82:.1f} 0 {-length:.1f}"
        f"C{half * 1.25:.1f} {-length * 0.82:.1f} {half * 1.1:.1f} {-length * 0.28:.1f} 0 0Z"
    )


def _gradient(ring: int, hue: float, spread: float) -> str:
    """Along the petals of a ring: deep at its base, bright at its tip."""
    share = ring / (_RINGS - 1)
    base, tip = hue + spread * share, hue + spread * (share + 0.25)
    length = _length(share)
    return (
        f'<radialGradient id="ring{ring}" gradientUnits="userSpaceOnUse" cx="0" cy="0" r="{length:.1f}">'
        f'<stop offset="0.1" stop-color="{_colour(base - 12, 0.60, 0.45 + 0.08 * share)}"/>'
        f'<stop offset="0.62" stop-color="{_colour(base, 0.60, 0.66 + 0.06 * share)}"/>'
        f'<stop offset="1" stop-color="{_colour(tip, 0.46, 0.88 + 0.04 * share)}"/></radialGradient>'
    )


def _heart(hue: float, spread: float) -> str:
    """Seeds in a spiral, as in a sunflower."""
    seeds = []
    for seed in range(1, 64):
        radius, angle = 3.0 * math.sqrt(seed), seed * math.pi * (3 - math.sqrt(5))
        x, y = radius * math.cos(angle), radius * math.sin(angle)
        fill = _colour(hue + spread + 40, 0.75, 0.84 - 0.32 * seed / 64)
        seeds.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2.4 - seed / 64:.2f}" fill="{fill}"/>')
    return f'<circle r="26" fill="{_colour(hue + spread + 20, 0.45, 0.27)}"/>{"".join(seeds)}'


def _colour(hue: float, chroma: float, light: float) -> str:
    """A colour by its hue in degrees; chroma and lightness from 0 to 1, the same to the eye at every hue."""
    angle, strength = math.radians(hue % 360), 0.24 * chroma
    a, b = strength * math.cos(angle), strength * math.sin(angle)
    # OKLab to linear sRGB (Ottosson 2020), then gamma; out-of-range colours are clipped
    long, medium, short = (
        (light + first * a + second * b) ** 3
        for first, second in ((0.3963, 0.2158), (-0.1056, -0.0639), (-0.0895, -1.2915))
    )
    linear = (
        4.0767 * long - 3.3077 * medium + 0.2310 * short,
        -1.2684 * long + 2.6098 * medium - 0.3413 * short,
        -0.0042 * long - 0.7034 * medium + 1.7076 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(1.0, max(0.0, one)))):02x}" for one in linear)


def _gamma(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
