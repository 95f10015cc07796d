"""A real Chromium for the tests of the page, driven over WebDriver by the standard library."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver's name for a reference to an element
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Space": " "}


class Browser:
    """One window of Chromium; ``width`` in CSS pixels."""

    def __init__(self, port: int, width: int, profile: Path) -> None:
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        options: dict[str, Any] = {
            "binary": shutil.which("chromium"),
            "args": [*QUIET, f"--user-data-dir={profile}"],
            # A window of Chromium has a least width; an emulated device has none.
            "mobileEmulation": {"deviceMetrics": {"width": width, "height": 844, "pixelRatio": 1}},
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{answer['sessionId']}"

    def open(self, page: Path) -> Browser:
        self._ask("POST", f"{self._session}/url", {"url": page.as_uri()})
        return self

    def run(self, script: str) -> Any:
        """What a script returns, such as "return document.title"."""
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": []})

    def click(self, selector: str) -> None:
        found = {"using": "css selector", "value": selector}
        element = self._ask("POST", f"{self._session}/element", found)[ELEMENT]
        self._ask("POST", f"{self._session}/element/{element}/click", {})

    def press(self, *keys: str) -> None:
        """Press keys one after the other: Tab, Enter, Space, or characters."""
        strokes = [
            {"type": kind, "value": KEYS.get(key, key)}
            for key in keys
            for kind in ("keyDown", "keyUp")
        ]
        keyboard = {"type": "key", "id": "keyboard", "actions": strokes}
        self._ask("POST", f"{self._session}/actions", {"actions": [keyboard]})

    def console(self) -> list[str]:
        """What the page told the console since it was last asked."""
        lines = self._ask("POST", f"{self._session}/se/log", {"type": "browser"})
        return [line["message"] for line in lines]

    def close(self) -> None:
        self._ask("DELETE", self._session)
        self._link.close()

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        self._link.request(method, path, None if body is None else json.dumps(body))
        value = json.loads(self._link.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{method} {path}: {value['message']}")
        return value


@contextmanager
def started_driver() -> Iterator[int]:
    """The port on which chromedriver listens; it ends with the block."""
    command = ["chromedriver", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        try:
            assert driver.stdout is not None
            for line in driver.stdout:
                if found := re.search(r"successfully on port (\d+)", line):
                    yield int(found[1])
                    break
            else:
                raise AssertionError("chromedriver did not start.")
        finally:
            driver.terminate()


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Callable[[int], Browser]]:
    """Gives a window of a width; one is kept for each width."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: run `make browser` as root, or install it.")
    windows: dict[int, Browser] = {}
    with ExitStack() as stack:
        port = stack.enter_context(started_driver())

        def window(width: int = 1200) -> Browser:
            if width not in windows:
                windows[width] = Browser(port, width, tmp_path_factory.mktemp("profile"))
                stack.callback(windows[width].close)
            return windows[width]

        yield window
