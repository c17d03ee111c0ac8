"""Friction in depth: models with nonlinear inner parameters, their fits, their choice, and motion that shows them."""
