"""Reads Nsight Systems exports; the only package that knows Nsight's names."""
