"""What a browser lacks to be a node is said before any form is shown, a sentence each with what to do."""

from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Route, expect

from farm.gateway import tab
from tests.acceptance.browser.tabs import PHONE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
SECURE, PLAIN = "https://farm.test", "http://farm.test"
NO_ISOLATION = {name: value for name, value in tab.HEADERS.items() if not name.startswith("Cross-Origin")}
NO_SIMD = "WebAssembly.validate = () => false"
NO_KEYS = "SubtleCrypto.prototype.generateKey = async () => { throw new DOMException('', 'NotSupportedError') }"
NO_STORE = "Object.defineProperty(window, 'indexedDB', { value: undefined })"


@pytest.mark.parametrize(
    ("origin", "headers", "script", "sentence"),
    [
        (SECURE, tab.HEADERS, NO_SIMD, "This browser has no WebAssembly SIMD, which ONNX Runtime Web needs: update it"),
        (SECURE, tab.HEADERS, NO_KEYS, "This browser makes no Ed25519 keys, by which the farm knows its nodes: update"),
        (SECURE, tab.HEADERS, NO_STORE, "This browser keeps nothing (IndexedDB)"),
        (SECURE, NO_ISOLATION, "", "This page is not isolated from other sites, so that its clock is coarse: open it"),
        (PLAIN, tab.HEADERS, "", "http://farm.test is not an https:// address: browsers keep keys and run threads"),
    ],
    ids=["no SIMD", "no Ed25519", "no IndexedDB", "no isolation", "no TLS"],
)
def test_what_a_browser_lacks_is_one_sentence_and_no_form_is_shown(
    browser: Browser, origin: str, headers: dict[str, str], script: str, sentence: str
) -> None:
    def served(route: Route) -> None:
        body, kind, _ = tab.load_page_file(PurePosixPath(urlsplit(route.request.url).path).name)
        route.fulfill(body=body, headers={**headers, "Content-Type": kind})

    context = browser.new_context(viewport=PHONE, ignore_https_errors=True)
    context.route("**/*", served)
    context.add_init_script(script)
    page = context.new_page()
    page.goto(f"{origin}/api/node/v1/tab/index.html#code")
    items = page.locator("#obstacles li")
    expect(items).to_have_count(1)
    assert items.inner_text().startswith(sentence)
    assert items.inner_text().endswith(".")
    assert not page.locator("#join").is_visible()
    context.close()
