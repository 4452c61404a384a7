# submit() as a program of its own, written by distrain-nb.


# submit(), which runs:
import os
from distrain_nb import log_metrics
rank = int(os.environ["RANK"])
for step in range(5):
    if rank == 0:
        log_metrics({"loss": 1 / (step + 1), "accuracy": step / 5}, step=step)
    print(f"step {step}")
import sys
print("a warning", file=sys.stderr)
answer = {"rank": rank, "weights": [1.0, 2.0]}
import time; time.sleep(2.5)

