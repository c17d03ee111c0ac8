from .data.battery import check as check
from .finding import Finding as Finding
from .model.physical import Audit as Audit
from .model.physical import audit as audit
from .verdict.assess import assess as assess
from .verdict.assessment import Assessment as Assessment
from .verdict.assessment import Check as Check
