"""Pictures and HTML pages from run folders. A page is one file and needs no network."""

from hopplus.report.curves import learning_curve, seat_boxes, seat_curves
from hopplus.report.page import page
from hopplus.report.replay import Replay
from hopplus_doctor.drawing import save_figure

__all__ = [
    "Replay",
    "learning_curve",
    "page",
    "save_figure",
    "seat_boxes",
    "seat_curves",
]
