"""Studies: variants x trials, run on Ray, summed up with intervals."""

from hopplus.runs.studies.cluster import run_study
from hopplus.runs.studies.study import Question, Study, Trial, open_study, read_study

__all__ = ["Question", "Study", "Trial", "open_study", "read_study", "run_study"]
