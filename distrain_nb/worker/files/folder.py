"""The folder of a run: the name of every file in it, who writes it, and its format.

Whoever wants to know about a run reads its folder, and not all who do so are of one version: a
kernel, a server, a fork server and a carrier each have the package as it was when they were
started. So a file keeps its name and the meaning of its fields. A later version may add fields that
have a default, states and files; a reader ignores what it doesn't know and fills in what is missing
(`fields.py`). JSON files are UTF-8 and are replaced in one step (`disk.py`).
"""

from __future__ import annotations

import os
from pathlib import Path

CONFIG_FILE = "config.yaml"  # settings for all runs, beside their folders
SECRETS_FILE = "secrets.json"  # mode 0600, beside it: a webhook's address, a mail's password
PRICES_FILE = "prices.yaml"  # there too: `backends/prices.py`

# The number of what this module says, which each run's record has. It is raised when a reader that
# goes by the rules above would get something wrong.
SCHEMA = 1

# Written when the run is put on the list (`run/store.py`).
RECORD_FILE = "record.json"  # its row in the list, and `schema`; with it the run is on the list
OPTIONS_FILE = "options.json"  # options that took lists: name to values
COST_FILE = "cost.json"  # `cost.RunCost`, by whoever starts the run, then by its carrier

# Written by people, at any time.
ANNOTATION_FILE = "annotation.json"  # `run/annotation.py`: a note and tags

# Written by the backend.
PROGRAM_FOLDER = "program"  # `rank/program.py`
LAUNCH_FILE = "launch.json"  # `launch.Launch`

# Written by whoever answers for the run: at first the kernel, then its fork server, its supervisor
# or its carrier.
STATUS_FILE = "status.json"  # `status.Status`
LOG_FILE = "log.tsv"  # `log.py`
PROGRESS_FILE = "progress.json"  # `metrics.progress.KeptProgress`: how far it was when
SUPERVISOR_LOG = "supervisor.log"  # text: what the supervisor itself prints
RESOURCES_FOLDER = "resources"  # event files, one folder a rank (`metrics/resources.py`)

# Written by the ranks, or fetched from where they ran.
EVENTS_FOLDER = "tensorboard"  # TensorBoard's event files
STEP_TIMES_VARIABLE = "DISTRAIN_STEP_TIMES"  # "0": no step is measured
STEP_TIMES_FOLDER = "step-times"  # a folder in it for each rank (`metrics/step_times.py`)
FACTS_VARIABLE = "DISTRAIN_FACTS"  # "0": nothing is recorded of what ranks train
FACTS_FOLDER = "facts"  # in it too, a file for each rank (`facts/record.py`): what is compared
TOKEN_FILE = "progress-token"  # mode 0600: what programs show `supervisor/receiver.py`
REPORTED_FILE = "reported"  # a line for each reporter of rank 0 (`metrics/progress.py`)
PROOF_FOLDER = "proof"  # while steps are proven (`rank/proving.py`): batches and weights
DRY_FOLDER = "dry"  # while ranks run alone (`rank/dry_rank.py`): turns, and what rank 0 broadcasts
DISPLAYS_FOLDER = "displays"  # likewise (`rank/displays.py`): a JSON file for each display
RESULTS_FOLDER = "results"  # the names of `--result` (`rank/values.py`)
CHECKPOINTS_FOLDER, MODEL_FOLDER = "checkpoints", "model"  # whatever the program saves there

# Written for a run elsewhere (`backends/remote/`).
SUBMISSION_FILE = "submission.json"  # `submission.Submission`: what its carrier is to do
VARIABLES_FILE = "variables.json"  # values of `--env`, until the job has been sent; mode 0600
JOURNAL_FILE = "carrier.json"  # `submission.Journal`: how far its carrier has come
REHEARSAL_FILE = "rehearsal.json"  # `rehearsed.Services`, for as long as a rehearsal's are there
LINKS_FILE = "links.json"  # title to URL
CARRIER_LOG = "carrier.log"  # text: what its carriers do and meet (`carrier_log.py`)
OLD_CARRIER_LOG = "carrier.log.1"  # the same, before that
LOCK_FILE = "carrier.lock"  # locked by the process that carries it; its time: the last one's start

# Of a run that an experiment tracker is to have (`tracking/`).
TRACKING_FILE = "tracking.json"  # `tracking.request.TrackingRequest`, by whoever starts the run
MLFLOW_FILE = "mlflow.json"  # `tracked.Tracked`: how far the process that tracks it has come
VERTEX_REQUEST_FILE = "vertex-tracking.json"  # the same two for Vertex AI Experiments
VERTEX_FILE = "vertex-experiment.json"
MLFLOW_FOLDER = "mlflow/{}"  # what a process that isn't rank 0 tells MLflow, by its index
TRACKIO_FOLDER = "trackio/{}"  # and what it tells trackio

# In a trial's run: what `cloudml-hypertune` writes, by the process's index.
HYPERTUNE_FILE = "hypertune-{}.metrics"

CANCEL_FILE = "cancel"  # by anybody: stop the run; why, where a study only wants no second one

# Empty files: that one is there, or when it was last touched, is all that it says.
SAVED_FILE = "saved"  # by the supervisor: all ranks have saved, and may end
WATCHED_FILE = "watched"  # a page has the log from its server (`supervisor/heartbeat.py`)
DRAWN_FILE = "drawn"  # and the charts

LOOK_FILE = "look"  # `ID SAMPLES`, by anybody: ranks write their stacks (`rank/stacks.py`)

# Kept of a run that has ended; made anew where it is missing or of another version.
METRICS_FILE = "metrics.json"  # `run/pages/best_metric.py`

# One for each process of the run, by its index.
FAILURE_FILE = "failure-{}.json"  # `failure.Failure`, by the process itself
ALONE_FILE = "alone-{}"  # text: why it has trained by itself (`rank/world.py`)
BEGUN_FILE = "begun-{}"  # `status.Owner`, by a rank that `mpirun` has started (`launch.py`)
SUCCEEDED_FILE = "succeeded-{}"  # empty: that rank has come to its end
WHERE_FILE = "where-{}.json"  # one line: where that process is, as it said last (`rank/stacks.py`)
HELD_FILE = "held-{}.txt"  # its main thread's stack, by a signal while C code keeps it
STOP_FILE = "stop-{}.json"  # `marks.Stop`: how far a rank is that saves when it is stopped
PIPE = "pipe-{}.{}"  # a named pipe by which it reaches the log: stream `o` or `e`

PROMPTS_FOLDER = "prompts"  # mode 0700: what ranks ask, and who can answer (`prompts.py`)

STEPS_FILE = "steps"  # on which step ranks agree to stop (`rank/agreement.py`)

RESERVE_FILE = "reserve-{}"  # nothing but room, given up on a full disk


def home_of_runs() -> Path:
    """Return the folder of all runs: `DISTRAIN_HOME`, or `~/.distrain`. Raises RuntimeError where
    there is no such home."""
    named = os.environ.get("DISTRAIN_HOME")
    return Path(named).expanduser() if named else Path.home() / ".distrain"
