"""Rows to coordinates, also for rows never seen."""
