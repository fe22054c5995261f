"""A node's pauses, its mailbox, its spool and the lock of its machine."""

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farm.contract.node import Offer, SecretGrant, Welcome
from farm.contract.reports import EndReport, Facts, Reply
from worker.agent.connection import enrolment, mailbox
from worker.agent.connection import gateway as farm
from worker.agent.connection.outbox import GivenUpError, Outbox, Spooled
from worker.agent.connection.presence import Presence
from worker.agent.home import Identity, NodeHome, NotEnrolledError
from worker.agent.machine import host_lock

OFFER = Offer(queue="node.1", message={"body": ""})
REPORT = Spooled(block="b", attempt=1, token="t", report=EndReport())


class Farm:
    """Answers reports with what `answers` holds, the last one for ever."""

    def __init__(self, *answers: Reply | Exception) -> None:
        self.answers = list(answers)
        self.count = 0

    def report(self, block: str, **_: object) -> Reply:
        self.count += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def outbox(folder: Path, *answers: Reply | Exception) -> Outbox:
    return Outbox(folder, Farm(*answers))


@pytest.mark.parametrize(("failures", "longest"), [(1, 0.5), (2, 1.0), (4, 4.0), (6, 10.0), (500, 10.0)])
def test_pauses_double_up_to_a_limit_and_half_of_each_is_random(failures: int, longest: float) -> None:
    assert mailbox.compute_backoff_s(failures, draw=lambda: 1.0) == pytest.approx(longest)
    assert mailbox.compute_backoff_s(failures, draw=lambda: 0.0) == pytest.approx(longest / 2)


def test_a_mailbox_outlives_an_answer_that_is_not_the_farm_s() -> None:
    answers: list[Offer | Exception] = [
        farm.RejectedError("a proxy's 404", status=404),
        farm.LeaseLostError("409"),
        OFFER,
    ]

    def fetch() -> Offer | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    box = mailbox.Mailbox(fetch, on_refused=lambda sentence: None)
    assert box.take(60.0) == OFFER
    box.close()


def test_hellos_go_on_after_the_disk_was_full(tmp_path: Path) -> None:
    presence = Presence(
        NodeHome(tmp_path),
        None,
        None,
        facts=lambda: Facts(hostname="h", os="Linux", arch="x86_64"),
        runtimes=tuple,
        block=lambda: None,
        log_tail=str,
    )
    welcomes: list[Welcome] = []
    stop = threading.Event()

    def on_welcome(welcome: Welcome) -> None:
        welcomes.append(welcome)
        presence.request_hello()
        if len(welcomes) == 1:
            raise OSError(28, "No space left on device")
        stop.set()

    presence._renew_secret = lambda: None  # type: ignore[method-assign]
    presence.say_hello = lambda **_: Welcome(health="active")  # type: ignore[method-assign]
    presence.request_hello()
    presence.run(stop=stop, on_welcome=on_welcome, on_refused=lambda sentence: None)
    assert len(welcomes) == 2


def test_a_mailbox_asks_only_when_a_message_is_wanted() -> None:
    polls = threading.Semaphore(0)

    def fetch() -> Offer | None:
        polls.release()
        return OFFER

    box = mailbox.Mailbox(fetch, on_refused=lambda sentence: None)
    assert not polls.acquire(timeout=0.1)
    assert box.take(60.0) == OFFER
    assert polls.acquire(timeout=60)
    assert not polls.acquire(timeout=0.1)
    box.close()


def test_a_mailbox_outlasts_a_farm_that_is_away() -> None:
    answers: list[Offer | Exception] = [farm.UnavailableError("away"), farm.UnavailableError("away"), OFFER]

    def fetch() -> Offer | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    box = mailbox.Mailbox(fetch, on_refused=lambda sentence: None)
    assert box.take(60.0) == OFFER
    box.close()


def test_a_refused_mailbox_says_so_once_and_asks_no_more() -> None:
    said: list[str] = []
    heard = threading.Event()

    def fetch() -> Offer | None:
        raise farm.NodeUnknownError("Who are you?")

    def hear(sentence: str) -> None:
        said.append(sentence)
        heard.set()

    box = mailbox.Mailbox(fetch, on_refused=hear)
    assert box.take(0.1) is None
    assert heard.wait(60)
    assert box.take(0.1) is None
    assert said == ["Who are you?"]


def test_a_mailbox_outlasts_a_mistake_of_its_own() -> None:
    answers: list[Offer | Exception] = [ZeroDivisionError("a thermometer without a scale"), OFFER]

    def fetch() -> Offer | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    box = mailbox.Mailbox(fetch, on_refused=lambda sentence: None)
    assert box.take(60.0) == OFFER
    box.close()


def test_a_mailbox_that_is_closed_while_an_offer_comes_ends_its_thread() -> None:
    polled = threading.Event()
    closed = threading.Event()

    def fetch() -> Offer | None:
        polled.set()
        closed.wait(60)
        return OFFER

    box = mailbox.Mailbox(fetch, on_refused=lambda sentence: None)
    assert box.take(0.0) is None
    assert polled.wait(60)
    box.close()
    closed.set()
    assert box.take(60.0) == OFFER
    box._thread.join(60)
    assert not box._thread.is_alive()


def test_a_report_is_kept_until_it_is_answered(tmp_path: Path) -> None:
    box = outbox(tmp_path, farm.UnavailableError("away"), Reply(go_on=False))
    assert box.send(REPORT, is_cancelled=lambda: False).go_on is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("no", [farm.LeaseLostError("late"), farm.RejectedError("odd", status=422)])
def test_a_report_answered_no_is_not_kept(tmp_path: Path, no: Exception) -> None:
    with pytest.raises(type(no)):
        outbox(tmp_path, no).send(REPORT, is_cancelled=lambda: False)
    assert list(tmp_path.iterdir()) == []


def test_an_unanswered_report_stays_when_the_agent_lets_go_and_the_next_one_sends_it(tmp_path: Path) -> None:
    with pytest.raises(GivenUpError):
        outbox(tmp_path, farm.UnavailableError("away")).send(REPORT, is_cancelled=lambda: True)
    assert len(list(tmp_path.iterdir())) == 1
    assert outbox(tmp_path, Reply()).flush(is_cancelled=lambda: False) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_late_or_garbled_report_in_the_spool_stops_no_other(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(GivenUpError):
            outbox(tmp_path, farm.UnavailableError("away")).send(REPORT, is_cancelled=lambda: True)
    (tmp_path / "0000.json").write_text("{")
    assert outbox(tmp_path, farm.LeaseLostError("late"), Reply()).flush(is_cancelled=lambda: False) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_sent_even_when_the_disk_takes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.touch()
    assert outbox(folder / "spool", Reply()).send(REPORT, is_cancelled=lambda: False).go_on


def test_only_one_measures_on_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    with (
        host_lock.hold_machine(patience_s=0),
        pytest.raises(host_lock.BusyError, match="This node is testing what else"),  # its own process holds it
        host_lock.hold_machine(patience_s=0.2),
    ):
        pass
    with host_lock.hold_machine(patience_s=0):
        pass


def test_waiting_for_the_machine_ends_when_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    began = time.monotonic()
    with (
        host_lock.hold_machine(patience_s=0),
        pytest.raises(host_lock.BusyError),
        host_lock.hold_machine(patience_s=60, is_cancelled=lambda: True),
    ):
        pass
    assert time.monotonic() - began < 30


def test_what_times_nothing_goes_on_beside_a_busy_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    with host_lock.try_to_hold_machine(patience_s=0) as first, host_lock.try_to_hold_machine(patience_s=0.1) as second:
        assert (first, second) == (True, False)


def test_a_link_planted_as_the_lock_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    with pytest.raises(OSError, match="symbolic link"), host_lock.hold_machine(patience_s=0):
        pass


def test_a_folder_without_a_node_says_how_to_join(tmp_path: Path) -> None:
    with pytest.raises(NotEnrolledError, match="onnxfarm node enroll"):
        NodeHome(tmp_path).load_identity()


def test_a_garbled_identity_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text('{"url": 1}')
    with pytest.raises(NotEnrolledError, match="cannot be read; move it away"):
        NodeHome(tmp_path).load_identity()


def test_secrets_and_keys_are_their_owners_alone(tmp_path: Path) -> None:
    home = NodeHome(tmp_path / "node")
    home.store_identity(Identity(url="https://f", node_id="1", name="n", private_key="k", fingerprint="f"))
    home.store_secret(grant(days=90))
    assert [path.stat().st_mode & 0o777 for path in sorted(home.folder.iterdir())] == [0o600, 0o600]


def grant(*, days: float) -> SecretGrant:
    made = datetime.now(UTC) - timedelta(days=90 - days)
    return SecretGrant(secret="ofn_1", expires_at=made + timedelta(days=90), rotate_at=made + timedelta(days=67.5))


def test_an_expired_secret_is_no_secret(tmp_path: Path) -> None:
    home = NodeHome(tmp_path)
    home.store_secret(grant(days=-1))
    assert home.load_secret() is None


def test_a_secret_is_renewed_when_three_quarters_of_its_life_are_over() -> None:
    assert not enrolment.is_renewal_due(grant(days=30))
    assert enrolment.is_renewal_due(grant(days=20))


def test_enrolling_twice_is_refused_before_the_farm_is_asked(tmp_path: Path) -> None:
    from tests.integration.small_agent import FACTS

    home = NodeHome(tmp_path)
    home.store_identity(Identity(url="https://f", node_id="1", name="lab", private_key="k", fingerprint="f"))
    with pytest.raises(enrolment.AlreadyEnrolledError, match="is node 'lab' of https://f already"):
        enrolment.enrol(home, url="https://f", code="ofe_12345678", name="lab", facts=FACTS)
