"""The reference workload: what a run is asked for, how it moves and computes, and what it leaves behind."""
