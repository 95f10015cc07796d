"""Finding the matching: starts, solvers, and the portfolio that chooses."""
