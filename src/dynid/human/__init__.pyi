from .build import human_model as human_model
from .prior import with_anthropometric_prior as with_anthropometric_prior
from .prior import with_virtual_links as with_virtual_links
from .table import AnthropometricTable as AnthropometricTable
from .table import anthropometric_table as anthropometric_table
