# acme_metrics.py
from farm.rules.cells.outside_metrics import Measure

WAIT = Measure("acme_wait_ms", "wait for the card", "ms", margin=0.1, is_told=True, alerts_as="waits", min_alert=0.5)
