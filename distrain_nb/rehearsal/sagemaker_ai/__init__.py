"""SageMaker as far as a training job meets it, on this machine; S3, STS and logs are moto's."""
