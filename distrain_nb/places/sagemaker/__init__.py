"""SageMaker."""
