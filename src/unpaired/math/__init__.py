"""Pure functions on tensors: kernels, dependence, density ratios, permutations."""
