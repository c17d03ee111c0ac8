from .blend import Blend as Blend
from .comparison import Comparison as Comparison
from .fit import fit_residual as fit_residual
from .prediction import Prediction as Prediction
from .predictor import Predictor as Predictor
from .residual import Residual as Residual
from .rows import TorqueRows as TorqueRows
from .training import Training as Training
