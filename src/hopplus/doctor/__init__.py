"""The doctor: questions about a game or a run, each answered with evidence.

from hopplus.doctor import examine
found = examine("runs/first")
found.verdict, found.suspects
"""

from hopplus.doctor.answer import Answer, Examination, Finding, Verdict
from hopplus.doctor.examine import QUESTIONS, examine

__all__ = ["QUESTIONS", "Answer", "Examination", "Finding", "Verdict", "examine"]
