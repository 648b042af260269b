from . import convert as convert
from . import data as data
from . import datasets as datasets
from . import encoders as encoders
from . import export as export
from . import layers as layers
from . import objectives as objectives
from . import ops as ops
from . import plots as plots
from . import recipes as recipes
from . import storage as storage
from . import tasks as tasks
from . import training as training

__version__: str
