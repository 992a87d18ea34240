"""Read a person's actions from the keyboard, one key press at a time."""

import os
import sys
from types import TracebackType

import numpy as np

from hopplus.games.game import GameSpec

MOVE_KEYS = {
    "up": ("w", "\x1b[A", "\x1bOA"),
    "down": ("s", "\x1b[B", "\x1bOB"),
    "left": ("a", "\x1b[D", "\x1bOD"),
    "right": ("d", "\x1b[C", "\x1bOC"),
}
STAY_KEYS, ACT_KEYS, QUIT_KEYS = (" ", "."), ("e", "\r", "\n"), ("q", "\x03", "\x04", "")


class Keyboard:
    """Reads single keys from the terminal without waiting for Enter."""

    def __init__(self, spec: GameSpec):
        self.spec = spec

    def __enter__(self) -> "Keyboard":
        try:
            import termios
            import tty
        except ImportError:
            raise ValueError(
                "a keyboard seat needs a Unix terminal; give scripts for all --seats, or use one"
            ) from None
        if not sys.stdin.isatty():
            raise ValueError(
                "a keyboard seat needs a terminal, and standard input is none; run it in one, or give scripts"
            )
        self._file = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file, termios.TCSADRAIN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import termios

        termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def choose(self, legal: np.ndarray) -> int | None:
        """The next legal action that is typed; None to quit."""
        while True:
            pressed = self._next_key()
            if pressed in QUIT_KEYS:
                return None
            action = self.meaning(pressed, legal)
            if action is not None and legal[action]:
                return action

    def _next_key(self) -> str:
        """One key press: a character, or the three that an arrow key sends."""
        pressed = os.read(self._file, 1)
        if pressed == b"\x1b":
            pressed += os.read(self._file, 2)
        return pressed.decode(errors="ignore")

    def meaning(self, pressed: str, legal: np.ndarray) -> int | None:
        """The action of a key, legal or not; None if the key has none."""
        names = self.spec.action_names
        for name, keys in MOVE_KEYS.items():
            if pressed in keys and name in names:
                return names.index(name)
        if pressed in STAY_KEYS:
            return self.spec.stay
        if pressed in ACT_KEYS:
            acts = [action for action, name in enumerate(names) if name not in MOVE_KEYS and action != self.spec.stay]
            return next((action for action in acts if legal[action]), None)
        return int(pressed) if pressed.isdigit() and int(pressed) < len(names) else None
