"""Colours that anyone can tell apart, on light and dark ground."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from crashbo.errors import InputError

ThemeName: TypeAlias = Literal["light", "dark"]

# Maps of one hue order that survive any colour vision and a grey printer; red to blue for chances.
COLOUR_MAPS = {
    "truth": "viridis",
    "mean": "viridis",
    "std": "cividis",
    "success": "RdYlBu",
    "acquisition": "magma",
    "unconstrained": "magma",
}


@dataclass(frozen=True)
class Theme:
    """Colours of a picture; the palette is that of Okabe and Ito, brightened on dark ground.

    Attributes:
        background, ink, muted, grid: ground, text, lesser text, grid lines.
        blue, orange, green, vermilion, purple: model, limits, success, failure, best guess.
    """

    name: ThemeName
    background: str
    ink: str
    muted: str
    grid: str
    blue: str
    orange: str
    green: str
    vermilion: str
    purple: str

    def colour(self, name: str) -> str:
        """A colour by its name in a theme; others are returned unchanged."""
        return str(getattr(self, name, name))

    @property
    def cycle(self) -> tuple[str, ...]:
        """Colours for several methods side by side."""
        return (self.blue, self.orange, self.green, self.vermilion, self.purple)


LIGHT = Theme(
    "light", "#ffffff", "#1b1f24", "#5f6770", "#d5d9de", "#0072B2", "#C77C00", "#009E73", "#D55E00", "#B0508C"
)
DARK = Theme("dark", "#14181f", "#e9edf2", "#9aa5b1", "#36404c", "#56B4E9", "#F0B340", "#2CC79B", "#FF8A50", "#E89CC8")


def get_theme(name: str) -> Theme:
    """Return the theme of a name."""
    found = {"light": LIGHT, "dark": DARK}.get(name)
    if found is None:
        raise InputError(f"`theme` must be 'light' or 'dark'; got {name!r}.")
    return found


def see_through(colour: str, share: float = 0.22) -> str:
    """A hex colour with some of it showing through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"
