"""From recordings to parameters: base parameters, observations, estimators."""
