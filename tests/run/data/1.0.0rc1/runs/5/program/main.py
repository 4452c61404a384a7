# submit() as a program of its own, written by distrain-nb.


# submit(), which runs:

from distrain_nb import log_metrics
for n in range(20):
    print("line", n)
    log_metrics(step=n, loss=n / 2)
total = 42

