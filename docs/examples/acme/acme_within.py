# acme_within.py
import numpy as np

from worker.runner.judges.judge import Judge


def look(outputs, labels):
    gaps = np.abs(outputs.astype(np.float64) - labels)
    return gaps.reshape(len(gaps), -1).max(axis=1) <= 1.0


Outside = Judge(look)
