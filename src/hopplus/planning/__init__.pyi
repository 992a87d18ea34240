from hopplus.planning.config import SearchConfig as SearchConfig
from hopplus.planning.model import Evaluation as Evaluation
from hopplus.planning.model import Model as Model
from hopplus.planning.model import Plan as Plan
