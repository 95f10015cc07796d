"""Estimators: check, call the rooms above, store what was learned."""
