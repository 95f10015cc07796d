"""Every method DMAE is compared with, each an estimator with the same face as DMAE."""
