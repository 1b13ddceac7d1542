"""What is asked of CUDA directly: the driver, the runtime, streams, a kernel that copies, and the link's rate."""
