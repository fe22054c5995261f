from farm.alerts.models.alert import Alert, AlertEvent, Investigation, Symptom
from farm.alerts.models.channel import Channel, Delivery
from farm.alerts.models.find import Find
from farm.alerts.models.watch import IndexLook, Point, Release, Watch, WatchRound
