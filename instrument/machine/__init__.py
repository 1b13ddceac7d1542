"""What the machine tells about itself: its GPUs, NUMA nodes and pages, and why something cannot be read."""
