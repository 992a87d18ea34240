"""Which seats change when one seat is changed? If seats are independent, only that seat."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from hopplus_doctor.answer import Picture


@dataclass(frozen=True)
class Influence:
    """How much a change of each seat changes each seat."""

    names: tuple[str, ...]
    reached: Float64[np.ndarray, "changed seats"]

    @property
    def own(self) -> Float64[np.ndarray, " seats"]:
        return np.diag(self.reached)

    @property
    def wrong(self) -> Float64[np.ndarray, "changed seats"]:
        """The changes of seats other than the changed one; the diagonal is 0."""
        return self.reached - np.diag(self.own)

    @property
    def worst(self) -> tuple[str, str, float]:
        """The changed seat, the other seat that changes most with it, and by how much."""
        changed, seat = np.unravel_index(self.wrong.argmax(), self.wrong.shape)
        return self.names[changed], self.names[seat], float(self.wrong.max())

    def picture(self, title: str, changed: str, reached: str, most: float = np.inf) -> Picture:
        """A matrix with rows "`changed` of seat" and columns "`reached` of seat"; numbers are cut at `most`."""
        rows = tuple(f"{changed} of {name}" for name in self.names)
        shown = np.minimum(self.reached, most).T.tolist()
        return Picture(
            "matrix",
            title,
            rows,
            {f"{reached} of {name}": column for name, column in zip(self.names, shown, strict=True)},
        )
