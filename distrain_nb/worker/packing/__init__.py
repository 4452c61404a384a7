"""Packing: files become samples, samples become tar shards, here or where a job runs."""
