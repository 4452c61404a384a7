"""Cells run again in a fork of the kernel: who knows the rank, and what a program makes."""
