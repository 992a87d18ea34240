from hopplus.core.checks import NUM_SEEDS as NUM_SEEDS
from hopplus.core.checks import check_seed as check_seed
from hopplus.core.devices import use_cores as use_cores
from hopplus.core.mesh import MeshConfig as MeshConfig
from hopplus.core.mesh import num_cores as num_cores
from hopplus.core.numerics import Metrics as Metrics
from hopplus.core.streams import stream as stream
from hopplus_doctor.p_values import p_words as p_words
