"""What the document "Distributed training" of Vertex AI prints of a trial's place: of a chief, two
workers and a parameter server, by the first worker of the first trial."""

from __future__ import annotations

import json
import re

# The document's own code, and a line for the variable that it has no code for.
PRINTS = """
import json
import os
from distrain_nb import log_metrics

tf_config_str = os.environ.get('TF_CONFIG')
tf_config_dict  = json.loads(tf_config_str)

# Convert back to string just for pretty printing
print(json.dumps(tf_config_dict, indent=2))
print(os.environ["CLUSTER_SPEC"])
log_metrics(loss=lr)
"""
TF_CONFIG = """\
{
  "cluster": {
    "chief": [
      "training-workerpool0-[ID_STRING_1]-0:2222"
    ],
    "ps": [
      "training-workerpool2-[ID_STRING_1]-0:2222"
    ],
    "worker": [
      "training-workerpool1-[ID_STRING_1]-0:2222",
      "training-workerpool1-[ID_STRING_1]-1:2222"
    ]
  },
  "environment": "cloud",
  "job": {
    ...
  },
  "task": {
    "cloud": "[ID_STRING_2]",
    "index": 0,
    "trial": "1",
    "type": "worker"
  }
}"""
# In the document's spacing, with the pools of the other example.
CLUSTER_SPEC = """\
{
   "cluster":{
      "workerpool0":[
         "cmle-training-workerpool0-ab-0:2222"
      ],
      "workerpool1":[
         "cmle-training-workerpool1-ab-0:2222",
         "cmle-training-workerpool1-ab-1:2222"
      ],
      "workerpool2":[
         "cmle-training-workerpool2-ab-0:2222"
      ]
   },
   "environment":"cloud",
   "task":{
      "type":"workerpool1",
      "index":0,
      "trial":"1"
   },
   "job":{
      ...
   }
}"""
_POOLS = {"chief": 0, "worker": 1, "ps": 2}


def tf_config(log: str) -> str:
    """What a rank's log has of it, with the generic values of the document."""
    lines = log_lines(log)
    text = "\n".join(lines[lines.index("{") : lines.index("}") + 1])
    for name, addresses in json.loads(text)["cluster"].items():
        for number, address in enumerate(addresses):
            host = f"training-workerpool{_POOLS[name]}-[ID_STRING_1]-{number}:2222"
            text = text.replace(f'"{address}"', f'"{host}"')
    text = re.sub(r'"cloud": "[^"]+"', '"cloud": "[ID_STRING_2]"', text)
    return re.sub(r'"job": \{\n.*\n  \},', '"job": {\n    ...\n  },', text, flags=re.DOTALL)


def cluster_spec(log: str) -> str:
    """What a rank's log has of it, in the document's spacing and with its generic values."""
    spec = json.loads(next(line for line in log_lines(log) if line.startswith('{"cluster"')))
    for pool, addresses in spec["cluster"].items():
        hosts = [f"cmle-training-{pool}-ab-{number}:2222" for number in range(len(addresses))]
        spec["cluster"][pool] = hosts
    assert spec["job"]["workerPoolSpecs"]
    text = json.dumps({**spec, "job": {"": 0}}, indent=3, separators=(",", ":"))
    return text.replace('      "":0\n', "      ...\n")


def log_lines(log: str) -> list[str]:
    """A rank's own lines."""
    return [line.partition("] ")[2] for line in log.splitlines()]
