"""Names layer-by-layer loads and compute inside the profiled process, and runs a reference workload."""
