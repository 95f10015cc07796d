"""Pure functions: PCA, CCA, Sinkhorn, ridge, hub correction, neighbours, kernels, dependence."""
