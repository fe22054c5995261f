"""Django settings: wiring only. Values come from farm.config.environment."""

from pathlib import Path

from django.contrib.messages.constants import ERROR, SUCCESS

from farm.config import environment
from farm.config.beat import SCHEDULER, every
from farm.contract.version import PREPARE_QUEUE, TICK_QUEUE
from farm.rules.runtimes.distributions import read_names
from farm.sandbox.privacy import make_private

ENVIRONMENT = environment.Environment()
BASE_DIR = Path(__file__).resolve().parents[2]
HOME = ENVIRONMENT.home.resolve()
# every process of the farm reads these settings, so that the folder is private before anything is written
make_private(HOME)

SECRET_KEY = ENVIRONMENT.read_or_create_secret_key()
DEBUG = ENVIRONMENT.debug
ALLOWED_HOSTS = ENVIRONMENT.hosts
IS_LOCAL = ENVIRONMENT.is_local
PUBLIC_URL = ENVIRONMENT.public_url.rstrip("/")
GATEWAY_URL = ENVIRONMENT.gateway_url.rstrip("/") or PUBLIC_URL

INSTALLED_APPS = [
    "farm.config.apps.WiringConfig",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "ninja",
    "django_htmx",
    "farm.accounts",
    "farm.registry",
    "farm.fleet",
    "farm.runs",
    "farm.alerts",
    "dashboard",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "farm.config.security.SecurityHeaders",
    "farm.api.methods.MethodNotAllowedMiddleware",
    "farm.config.compression.Compression",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "farm.config.urls"
WSGI_APPLICATION = "farm.config.wsgi.application"
ASGI_APPLICATION = "farm.config.asgi.application"
AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"

# Sign-in by OpenID Connect, and by one-time links
OPENID = environment.read_registration(ENVIRONMENT)
LOCAL_SIGN_IN = ENVIRONMENT.local_sign_in

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["django.templatetags.static", "dashboard.templatetags.pages"],
        },
    }
]

DATABASES = {"default": environment.make_database_settings(ENVIRONMENT.database_url, home=HOME)}

# Pages cache parts of themselves, under a key that holds the rights of the reader. `large` is for whole runs (50 MB for
# 5,000 cells) and long series. Entries do not expire, because the key names the revision.
_KEEPING = "dashboard.cache.ProcessCache"
CACHES: dict[str, dict[str, object]] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "pieces": {"BACKEND": _KEEPING, "LOCATION": "pieces", "OPTIONS": {"MAX_ENTRIES": 128}},
    "large": {"BACKEND": _KEEPING, "LOCATION": "large", "OPTIONS": {"MAX_ENTRIES": 12}},
}

# for each level, the class of our stylesheet and that of Django's admin
MESSAGE_TAGS = {SUCCESS: "good success", ERROR: "bad error"}

LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = "UTC"

# Static files are served from the packages on a single machine; elsewhere `collectstatic` hashes and compresses them.
STATIC_URL = "/static/"
STATIC_ROOT = HOME / "static"
STATIC_ROOT.mkdir(exist_ok=True)
WHITENOISE_USE_FINDERS = not ENVIRONMENT.collected_static
_static_storage = (
    "whitenoise.storage.CompressedManifestStaticFilesStorage"
    if ENVIRONMENT.collected_static
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES: dict[str, object] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _static_storage},
}
if ENVIRONMENT.bucket:
    STORAGES["objects"] = environment.make_bucket_storage(
        ENVIRONMENT.bucket, url=ENVIRONMENT.bucket_url, region=ENVIRONMENT.bucket_region
    )

# Uploads: one handler that hashes while it writes into the store; nothing is held in memory.
STORE_DIR = (ENVIRONMENT.store_dir or HOME / "store").resolve()
make_private(STORE_DIR)
FILE_UPLOAD_HANDLERS = ["farm.registry.upload_handler.StoreUploadHandler"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024**2
DATA_UPLOAD_MAX_NUMBER_FILES = 64
MAX_UPLOAD_BYTES = ENVIRONMENT.max_upload_bytes
DISK_RESERVE_BYTES = ENVIRONMENT.disk_reserve_bytes
INSPECTION_TIMEOUT_S = ENVIRONMENT.inspection_timeout_s
MAKING_TIMEOUT_S = ENVIRONMENT.making_timeout_s
LEASE_S = ENVIRONMENT.lease_s
METRICS_TOKEN = ENVIRONMENT.metrics_token
ALLOWED_PACKAGES = read_names(ENVIRONMENT.allowed_packages)
NPM_REGISTRY = ENVIRONMENT.npm_registry
UNSANDBOXED = ENVIRONMENT.owns_every_model

# Browsers. Cookies are not kept apart by port, so they carry the product's name.
SESSION_COOKIE_NAME = "onnxfarm_session"
CSRF_COOKIE_NAME = "onnxfarm_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not IS_LOCAL
CSRF_TRUSTED_ORIGINS = [] if IS_LOCAL else [PUBLIC_URL]
SECURE_SSL_REDIRECT = not IS_LOCAL
# the farm's own node asks the gateway on the loopback interface; other nodes refuse plain HTTP by themselves
SECURE_REDIRECT_EXEMPT = ["^api/node/"]
SECURE_HSTS_SECONDS = 0 if IS_LOCAL else 365 * 24 * 3600
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ENVIRONMENT.behind_proxy else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# HSTS for subdomains, and preloading in browsers, would bind hosts that do not belong to this farm
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
if IS_LOCAL:
    # on loopback the farm uses plain HTTP: no HSTS, no redirect, cookies without `secure`
    SILENCED_SYSTEM_CHECKS += ["security.W004", "security.W008", "security.W012", "security.W016"]

# Celery: messages are hints, the database decides.
CELERY_BROKER_URL = ENVIRONMENT.broker
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# no retries: a sender of hints goes on at once while the broker is away, and the next tick sends them again
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "priority_steps": [0],
    "socket_connect_timeout": 5,
    "visibility_timeout": 3600,
    "max_retries": 0,
}
CELERY_TASK_DEFAULT_QUEUE = PREPARE_QUEUE
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = TIME_ZONE
# a tick that has waited this long is dropped, because the next one is already in the queue
_ticking = {"queue": TICK_QUEUE, "expires": max(5.0, 2 * ENVIRONMENT.tick_s)}
CELERY_BEAT_SCHEDULER = SCHEDULER
CELERY_BEAT_SCHEDULE = {
    "tick": {"task": "runs.tick", "schedule": every(ENVIRONMENT.tick_s), "options": _ticking},
    "sweep the registry": {"task": "registry.sweep", "schedule": every(15.0), "options": _ticking},
    "watch": {"task": "alerts.tick", "schedule": every(2 * ENVIRONMENT.tick_s), "options": _ticking},
    "retain": {"task": "runs.retain", "schedule": every(60.0), "options": _ticking},
    "clear orphans": {"task": "registry.clear_orphans", "schedule": every(3600.0), "options": {"queue": TICK_QUEUE}},
    "look for releases": {"task": "alerts.look_for_releases", "schedule": every(20.0), "options": _ticking},
}

# the seconds after which a page asks again about a run that is being measured; a round of it takes longer
LIVE_PERIOD_S = 5

# Messages to people. Webhooks may go to public addresses, and to the networks that are named here.
INDEX_POLL_S = ENVIRONMENT.index_poll_s
WEBHOOK_NETWORKS = [part.strip() for part in ENVIRONMENT.webhook_networks.split(",") if part.strip()]
DEFAULT_FROM_EMAIL = ENVIRONMENT.mail_from
HAS_MAIL = bool(ENVIRONMENT.mail_url)
globals().update(environment.make_mail_settings(ENVIRONMENT.mail_url))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "farm.config.logs.RedactingFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": ENVIRONMENT.log_level},
    # no line for each refusal, because strangers can cause any number of them; and none for each tick
    "loggers": {"django.request": {"level": "ERROR"}, "celery.beat": {"level": "WARNING"}},
}
