from .generate import GeneratedCode as GeneratedCode
from .generate import casadi_functions as casadi_functions
from .generate import generate_code as generate_code
from .symbolic import Equations as Equations
from .symbolic import equations as equations
