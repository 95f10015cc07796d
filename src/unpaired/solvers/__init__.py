"""Matchings of two Gram matrices: quadratic assignment, exactly or nearly."""
