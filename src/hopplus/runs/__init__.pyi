from hopplus.core.checks import NonFiniteRunError as NonFiniteRunError
from hopplus.runs.config import RunConfig as RunConfig
from hopplus.runs.evaluation import evaluate as evaluate
from hopplus.runs.run import Run as Run
from hopplus.runs.run import load as load
from hopplus.runs.training import train as train
