from hopplus.runs.studies.cluster import run_study as run_study
from hopplus.runs.studies.study import Question as Question
from hopplus.runs.studies.study import Study as Study
from hopplus.runs.studies.study import Trial as Trial
from hopplus.runs.studies.study import open_study as open_study
from hopplus.runs.studies.study import read_study as read_study
