from farm.registry.services.descriptions import describe_model, describe_version, keep_version
from farm.registry.services.origins import OWN_LINE, Origin
from farm.registry.services.package_indexes import add_index, look_at_index, remove_index
from farm.registry.services.products import ensure_preparation, ensure_variant, order_variant_report, outline_of
from farm.registry.services.recovery import sweep
from farm.registry.services.removal import (
    Removed,
    clear_orphans,
    forget_model,
    must_have_files,
    remove_model,
    remove_unused,
    remove_version,
    restore_model,
    restore_version,
    sweep_branch,
)
from farm.registry.services.resumption import abandon, append, begin_upload, clear_expired, complete
from farm.registry.services.uploads import (
    add_blob,
    add_evaluation,
    receive_upload,
    room_left,
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
