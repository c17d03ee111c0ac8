"""Statistics: hypothesis tests of residuals, instruments and models, corrections for multiple tests."""

from dynid.assessment.causes.candidates import EffectCode
from dynid.assessment.causes.cause import Cause, Causes
from dynid.assessment.causes.cause_code import CauseCode, Relevance
from dynid.assessment.causes.cause_search import find_causes
from dynid.assessment.causes.cause_source import CauseSource, cause_codes, cause_sources
from dynid.assessment.causes.diagnosis import Diagnosis, diagnose
from dynid.assessment.causes.hausman import hausman_test
from dynid.assessment.causes.instruments import exogeneity_test, hansen, instrument_test, sargan, segment
from dynid.assessment.causes.missing import Effect, MissingEffects, missing_effects
from dynid.assessment.causes.nested import f_test, terms_needed
from dynid.assessment.causes.residuals import Correlogram, ResidualTests, correlogram, residual_tests
from dynid.hypothesis import HypothesisTest, TestCode

__all__ = [
    "Cause",
    "CauseCode",
    "CauseSource",
    "Causes",
    "Correlogram",
    "Diagnosis",
    "Effect",
    "EffectCode",
    "HypothesisTest",
    "MissingEffects",
    "Relevance",
    "ResidualTests",
    "TestCode",
    "cause_codes",
    "cause_sources",
    "correlogram",
    "diagnose",
    "exogeneity_test",
    "f_test",
    "find_causes",
    "hansen",
    "hausman_test",
    "instrument_test",
    "missing_effects",
    "residual_tests",
    "sargan",
    "segment",
    "terms_needed",
]
