"""OCI images without a Docker daemon: layers, a registry client, and the builders."""
