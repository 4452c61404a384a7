"""What we refuse or advise of our own accord, each with the service's reference for it.

A `Shape` is one of botocore's model of SageMaker, a `Field` one of Vertex AI's messages with words
of its reference, a `Page` a page of documentation. `Own` has no limit of a service behind it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

STUDY, PARAMETER = "study.StudySpec", "study.StudySpec.ParameterSpec"


class Shape(NamedTuple):
    name: str


class Field(NamedTuple):
    message: str
    words: str


class Page(NamedTuple):
    address: str


class Own(NamedTuple):
    why: str


Reference: TypeAlias = "Shape | Field | Page | Own"

VERTEX, AWS = (
    "https://cloud.google.com/vertex-ai/docs",
    "https://docs.aws.amazon.com/sagemaker/latest",
)
TUNING_LIMITS = Page(f"{AWS}/dg/automatic-model-tuning-limits.html")
METRICS = Page(f"{AWS}/dg/automatic-model-tuning-define-metrics-variables.html")
VPC = Page(f"{AWS}/dg/train-vpc.html")
LABELS = Page("https://cloud.google.com/resource-manager/docs/creating-managing-labels")
LACKS = Own("the place has nothing that this could be sent as")
SENSE = Own("it has no meaning anywhere")
FORM = Own("how an option is written")
LAUNCH = Own("how programs are started here")

REFERENCES: dict[str, tuple[Reference, ...]] = {
    # tuning/rules
    "tune-name": (SENSE,),
    "tune-name-place": (
        Field(
            PARAMETER,
            "parameter_id Required. The ID of the parameter. Must not contain whitespaces",
        ),
    ),
    "tune-finite": (SENSE,),
    "tune-range": (SENSE,),
    "tune-values": (
        Field(f"{PARAMETER}.DiscreteValueSpec", "should not contain more than 1,000 values"),
        Shape("ParameterValues"),
    ),
    "tune-truth": (Own("bool('False') is true"),),
    "tune-scale": (
        Field(f"{PARAMETER}.ScaleType", "The entire feasible space must be strictly positive"),
        Field(PARAMETER, "Leave unset for ``CATEGORICAL`` parameters"),
        Shape("ContinuousParameterRange"),
    ),
    "tune-default": (SENSE,),
    "tune-condition": (
        Field(
            f"{PARAMETER}.ConditionalParameterSpec.DiscreteValueCondition",
            "All values must exist in ``discrete_value_spec`` of parent parameter",
        ),
    ),
    "tune-twice": (Field(PARAMETER, "they must have disjoint parent_value_condition"),),
    "tune-circle": (SENSE,),
    "tune-count": (
        Shape("IntegerParameterRanges"),
        Shape("ContinuousParameterRanges"),
        Shape("CategoricalParameterRanges"),
    ),
    "tune-words": (Shape("CategoricalParameterRange"),),
    "tune-condition-place": (LACKS,),
    "study-empty": (SENSE,),
    "study-goal": (Field(STUDY, "metrics Required"),),
    "goal-metric": (Shape("MetricName"),),
    "goal-metric-place": (Field(f"{STUDY}.MetricSpec", "Must not contain whitespaces"),),
    "goal-twice": (Field(f"{STUDY}.MetricSpec", "must be unique amongst all MetricSpecs"),),
    "goal-fraction": (Field(f"{STUDY}.MetricSpec.SafetyMetricConfig", "between 0.0 and 1.0"),),
    "goal-safety": (
        Field(f"{STUDY}.MetricSpec", "You must provide a separate metric for objective"),
    ),
    "goal-place": (LACKS,),
    "goal-count": (LACKS,),
    "trials": (Shape("MaxNumberOfTrainingJobs"),),
    "trials-grid": (SENSE,),
    "trials-place": (TUNING_LIMITS,),
    "parallel": (Shape("MaxParallelTrainingJobs"),),
    "parallel-place": (TUNING_LIMITS,),
    "max-failed": (
        Field(
            "hyperparameter_tuning_job.HyperparameterTuningJob",
            "If set to 0, Vertex AI decides how many Trials",
        ),
    ),
    "search-seed": (Shape("RandomSeed"),),
    "search-grid": (
        Field(
            f"{STUDY}.Algorithm",
            "all parameters must be ``INTEGER``, ``CATEGORICAL``, or ``DISCRETE``",
        ),
        Shape("CategoricalParameterRange"),
    ),
    "search-place": (
        Field(f"{STUDY}.Algorithm", "GRID_SEARCH"),
        Shape("HyperParameterTuningJobStrategyType"),
    ),
    "search-hyperband": (Shape("HyperParameterTuningJobStrategyType"),),
    "stop-goals": (SENSE,),
    "stop-steps": (SENSE,),
    "stop-steps-place": (
        Shape("HyperbandStrategyMaxResource"),
        Shape("HyperbandStrategyMinResource"),
    ),
    "stop-learning-rate": (
        Field(
            f"{STUDY}.ConvexAutomatedStoppingSpec",
            "Leave it blank if learning rate is not in a parameter in tuning",
        ),
    ),
    "stop-place": (Shape("TrainingJobEarlyStoppingType"),),
    "initial": (SENSE,),
    "initial-count": (SENSE,),
    "initial-place": (LACKS,),
    "end-time": (SENSE,),
    "end-number": (
        Shape("HyperParameterTuningMaxRuntimeInSeconds"),
        Shape("MaxNumberOfTrainingJobsNotImproving"),
    ),
    "end-progress": (
        Field(f"{STUDY}.StudyStoppingConfig", "Effective only for single-objective studies"),
    ),
    "end-place": (LACKS,),
    "left-out": (
        Field(f"{PARAMETER}.DoubleValueSpec", "Not supported by HyperparameterTuningJob"),
        Field(STUDY, "Not supported by HyperparameterTuningJob or TrainingPipeline"),
    ),
    # backends/vertex
    "vertex.name": (
        Field("custom_job.CustomJob", "up to 128 characters long and can consist of any UTF-8"),
    ),
    "vertex.env-count": (
        Field("custom_job.ContainerSpec", "Maximum limit is 100"),
        Field("custom_job.PythonPackageSpec", "Maximum limit is 100"),
    ),
    "vertex.persistent-resource": (
        Field(
            "persistent_resource_service.CreatePersistentResourceRequest",
            "maximum length is 63 characters, and valid characters are "
            "``/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/``",
        ),
    ),
    "vertex.experiment-name": (
        Field(
            "metadata_service.CreateContextRequest",
            "Must be 4-128 characters in length. Valid characters are ``/[a-z][0-9]-/``",
        ),
    ),
    "vertex.no-service-account": (Page(f"{VERTEX}/experiments/tensorboard-training"),),
    "vertex.two-trackers": (Page(f"{VERTEX}/experiments/tensorboard-training"),),
    "vertex.launcher": (LAUNCH,),
    "vertex.retries": (
        Field("custom_job.Scheduling", "overrides ``Scheduling.restart_job_on_worker_restart``"),
    ),
    "vertex.ip-range": (
        Field("custom_job.CustomJobSpec", "names for the reserved ip ranges under the VPC network"),
    ),
    "vertex.two-networks": (
        Field("service_networking.PscInterfaceConfig", "only used for resources using PSC-I"),
    ),
    "vertex.mpirun": (LAUNCH,),
    "vertex.no-prebuilt": (
        Field("custom_job.PythonPackageSpec", "You must use an image from this list"),
    ),
    "vertex.reduction-backend": (Page(f"{VERTEX}/training/distributed-training"),),
    "vertex.reduction-base": (Page(f"{VERTEX}/training/distributed-training"),),
    "vertex.study-pipeline": (LACKS,),
    "vertex.study-retries": (LACKS,),
    "sagemaker.retries": (LACKS,),
    "vertex.study-run": (LACKS,),
    "vertex.no-{name}": (Own("what no request can be sent without"),),
    # backends/sagemaker
    "accelerator.choices": (Own("one image serves all instance types of a choice"),),
    "sagemaker.kms-choices": (
        Shape("KmsKeyId"),
        Page(f"{AWS}/APIReference/API_ResourceConfig.html"),
    ),
    "sagemaker.limit": (Own("botocore's whole model is asked"),),
    "sagemaker.old-boto3": (Own("botocore's whole model is asked"),),
    "sagemaker.no-boto3": (Own("nothing can be sent without it"),),
    "sagemaker.isolated-secret": (Page(f"{AWS}/dg/mkt-algo-model-internet-free.html"),),
    "sagemaker.isolate-packages": (Page(f"{AWS}/dg/mkt-algo-model-internet-free.html"),),
    "sagemaker.mpirun": (LAUNCH,),
    "sagemaker.builder": (LAUNCH,),
    "sagemaker.vpc": (Shape("VpcConfig"),),
    "sagemaker.file-system-vpc": (VPC,),
    "sagemaker.channel-name": (Own("the channel of our own code"),),
    "sagemaker.encrypt": (SENSE,),
    "sagemaker.keep-alive-spot": (Page(f"{AWS}/dg/train-warm-pools.html"),),
    "sagemaker.distribution": (LAUNCH,),
    "sagemaker.instance-groups": (Page(f"{AWS}/dg/train-heterogeneous-cluster.html"),),
    "sagemaker.no-container": (LAUNCH,),
    "sagemaker.python": (LAUNCH,),
    "sagemaker.unknown-region": (Own("a warning: botocore may know fewer than there are"),),
    "sagemaker.no-region": (Own("what no request can be sent without"),),
    "sagemaker.no-role": (Shape("RoleArn"),),
    "sagemaker.bucket": (SENSE,),
    "sagemaker.repository": (SENSE,),
    "sagemaker.region": (SENSE,),
    "sagemaker.study-image": (LAUNCH,),
    "sagemaker.study-access": (LACKS,),
    "sagemaker.study-machines": (LACKS,),
    "sagemaker.study-hyperparameter": (
        Page(f"{AWS}/dg/automatic-model-tuning-define-ranges.html"),
    ),
    "sagemaker.study-hyperband": (Shape("HyperbandStrategyMaxResource"),),
    ".study-only": (SENSE,),
}

# Options that are refused where they are read, by what the message begins with.
REFUSED: dict[str, tuple[Reference, ...]] = {
    "invalid --label": (
        Field(
            "custom_job.CustomJob",
            "Label keys and values can be no longer than 64 characters "
            "(Unicode codepoints), can only contain lowercase letters, numeric characters, "
            "underscores and dashes. International characters are allowed",
        ),
        LABELS,
    ),
    "{len(pairs)} times --label": (LABELS,),
    "invalid --env": (
        Field("env_var.EnvVar", "Must be a valid C identifier"),
        Shape("TrainingEnvironmentKey"),
        Field(
            "custom_job.CustomJobSpec",
            "The following Vertex AI environment variables will be passed",
        ),
    ),
    "invalid --nfs": (Field("machine_resources.NfsMount", "Has to start with '/'"),),
    "invalid --lustre": (Field("machine_resources.LustreMount", "instance_ip Required"),),
    "invalid --hyperparameter": (LAUNCH,),
    "--metric {name}": (METRICS,),
    "invalid --warm-start": (FORM,),
    "invalid --keep-alive": (FORM, Shape("KeepAlivePeriodInSeconds")),
    "invalid --attempts": (FORM, Shape("MaximumRetryAttempts")),
    "invalid --{option}": (FORM,),
    "--{option} {name}": (Shape("Channel"),),
    "--channel {name}": (Page(f"{AWS}/APIReference/API_Channel.html"),),
    "--data {name}": (FORM,),
    "jobs on Vertex AI have Cloud Storage": (FORM,),
    "the role of a job on SageMaker opens S3": (FORM,),
    "not mirrored to Vertex AI": (Own("what no request can be sent without"),),
    "{where}": (Own("a file of settings that can't be read"),),
    "SageMaker's settings": (Own("a file of settings that can't be read"),),
    "the tuning job {job}": (LACKS,),
}
