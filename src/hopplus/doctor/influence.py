"""Who is reached when one seat is changed? Only itself, where seats are independent of each other."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from hopplus.doctor.answer import Picture


@dataclass(frozen=True)
class Influence:
    """How much each seat is reached by a change of each."""

    names: tuple[str, ...]
    reached: Float64[np.ndarray, "changed seats"]

    @property
    def own(self) -> Float64[np.ndarray, " seats"]:
        return np.diag(self.reached)

    @property
    def wrong(self) -> Float64[np.ndarray, "changed seats"]:
        """What reaches another seat than the one that was changed."""
        return self.reached - np.diag(self.own)

    @property
    def worst(self) -> tuple[str, str, float]:
        """Who was changed, who was reached, and how much."""
        changed, seat = np.unravel_index(self.wrong.argmax(), self.wrong.shape)
        return self.names[changed], self.names[seat], float(self.wrong.max())

    def picture(self, title: str, changed: str, reached: str, most: float = np.inf) -> Picture:
        """A matrix; `changed` and `reached` say what of a seat its rows and columns are, numbers end at `most`."""
        rows = tuple(f"{changed} of {name}" for name in self.names)
        shown = np.minimum(self.reached, most).T.tolist()
        return Picture(
            "matrix",
            title,
            rows,
            {f"{reached} of {name}": column for name, column in zip(self.names, shown, strict=True)},
        )
