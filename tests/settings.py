"""The farm's settings with a home folder of the test run's own, removed at its end.

Processes that tests start inherit ONNXFARM_TEST_HOME and so keep whatever home they are given. The database is SQLite
in that home, or the one of ONNXFARM_TEST_DATABASE_URL (`python -m tests.postgres pytest …` makes one).
"""

import atexit
import os
import shutil
import sys
import tempfile

# each of several test processes has a home, and so a broker, of its own
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if "ONNXFARM_TEST_HOME" not in os.environ or os.environ.get("ONNXFARM_TEST_HOME_OF", "") != _worker:
    os.environ["ONNXFARM_TEST_HOME_OF"] = _worker
    _home = tempfile.mkdtemp(prefix="onnxfarm-test-")
    os.environ["ONNXFARM_TEST_HOME"] = os.environ["ONNXFARM_HOME"] = _home
    # what another test process or a farm of this machine measures holds nothing up here
    os.environ["ONNXFARM_HOST_LOCK"] = f"{_home}/measuring.lock"
    for _name in ("DATABASE_URL", "BROKER_URL", "PUBLIC_URL", "GATEWAY_URL", "TOKEN", "SERVER"):
        os.environ.pop(f"ONNXFARM_{_name}", None)
    atexit.register(shutil.rmtree, _home, ignore_errors=True)

if sys.platform != "linux":
    # no sandbox can be had there, and the models of the tests are the developer's own
    os.environ.setdefault("ONNXFARM_UNSANDBOXED", "yes-i-own-every-model")

from farm.config.environment import make_database_settings  # noqa: E402
from farm.config.settings import *  # noqa: E402, F403

_url = os.environ.get("ONNXFARM_TEST_DATABASE_URL", "")
if _url:
    # not by ONNXFARM_DATABASE_URL: farms that tests start in a home of their own bring their own database
    DATABASES = {"default": make_database_settings(_url, home=HOME)}  # noqa: F405

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
