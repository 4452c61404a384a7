"""Rules of layouts and studies for SageMaker."""
