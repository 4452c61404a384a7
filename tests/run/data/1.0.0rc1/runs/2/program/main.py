# submit() as a program of its own, written by distrain-nb.


# submit(), which runs:
import os
print("before")
if os.environ["RANK"] == "1":
    raise ValueError("the batch is empty")
import time; time.sleep(60)

