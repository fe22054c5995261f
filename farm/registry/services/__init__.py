from farm.registry.services.descriptions import describe_model, describe_version, keep_version
from farm.registry.services.origins import OWN_LINE, Origin
from farm.registry.services.package_indexes import add_index, list_index_versions, remove_index
from farm.registry.services.products import ensure_preparation, ensure_variant, order_variant_report, outline_of
from farm.registry.services.recovery import recover_rows
from farm.registry.services.removal import (
    Removed,
    check_has_files,
    clear_orphans,
    expire_branch_version,
    expire_model,
    remove_model,
    remove_unused,
    remove_version,
    restore_model,
    restore_version,
)
from farm.registry.services.resumption import append_piece, begin_upload, cancel_upload, clear_expired, complete_upload
from farm.registry.services.uploads import (
    add_blob,
    add_evaluation,
    free_quota_bytes,
    receive_upload,
    store_artifact,
    store_blob,
)
from farm.registry.services.web_runtimes import (
    fetch_web_runtime,
    published_on_npm,
    web_file,
    web_runtime,
)
from farm.registry.services.workshop import (
    check_evaluation,
    inspect_version,
    make_outline,
    make_variant,
    prepare_inputs,
    report_variant,
)
