"""How good is it: retrieval, matching and classifier metrics, as plain numbers."""
