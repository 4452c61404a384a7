"""Written forms of layouts and studies for SageMaker."""
