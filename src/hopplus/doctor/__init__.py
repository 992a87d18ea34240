"""The doctor: questions about a game or a run, each answered with evidence.

from hopplus.doctor import examine
examination = examine("runs/first")
examination.verdict, examination.suspects
"""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
