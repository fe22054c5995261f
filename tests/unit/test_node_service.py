"""Files by which the system starts a node, and the tags that a processor proves by itself."""

import plistlib
from pathlib import Path

import pytest

from farm.contract.reports import Facts
from onnxfarm.here import service
from onnxfarm.problems import Usage
from worker.agent.abilities import probes
from worker.agent.main import make_node_name

HOME = Path("/srv/node one")
COMMAND = ["/opt/farm/bin/onnxfarm", "node", "start"]


def test_a_systemd_unit_starts_the_node_of_its_folder_by_full_paths() -> None:
    unit = service.make_unit("linux", command=COMMAND, home=HOME, user_home=Path("/home/me"))
    assert unit.path == Path("/home/me/.config/systemd/user/onnxfarm-node.service")
    assert 'ExecStart="/opt/farm/bin/onnxfarm" "node" "start" "--home" "/srv/node one"\n' in unit.text


def test_a_refused_node_is_not_started_again_by_systemd() -> None:
    unit = service.make_unit("linux", command=COMMAND, home=HOME)
    assert "RestartPreventExitStatus=2 3\n" in unit.text


def test_a_percent_sign_in_a_path_is_no_specifier_of_systemd() -> None:
    assert '"/srv/100%%"' in service.make_unit("linux", command=COMMAND, home=Path("/srv/100%")).text


def test_a_launchd_agent_is_a_property_list_with_the_same_words() -> None:
    unit = service.make_unit("darwin", command=COMMAND, home=HOME, user_home=Path("/Users/me"))
    assert plistlib.loads(unit.text.encode())["ProgramArguments"] == [*COMMAND, "--home", "/srv/node one"]
    assert unit.path.name == "org.onnxfarm.node.plist"


def test_a_system_without_a_known_service_manager_is_told_what_to_do() -> None:
    with pytest.raises(Usage, match="let your system run `onnxfarm node start`"):
        service.make_unit("win32", command=COMMAND, home=HOME)


@pytest.mark.parametrize(("arch", "tag"), [("x86_64", "x86"), ("AMD64", "x86"), ("aarch64", "arm"), ("arm64", "arm")])
def test_an_architecture_proves_its_tag_and_no_other(arch: str, tag: str) -> None:
    found = probes.list_machine_tags(Facts(hostname="h", os="o", arch=arch))
    assert found == {tag: f"architecture {arch}"}


def test_instruction_sets_are_tags_with_their_evidence() -> None:
    facts = Facts(hostname="h", os="o", arch="riscv64", instruction_sets=("rvv",))
    assert probes.list_machine_tags(facts) == {"rvv": "the processor lists rvv"}


def test_what_probes_found_is_kept_for_the_next_start(tmp_path: Path) -> None:
    found = probes.Abilities(tags={"openvino": "seen"}, providers=("OpenVINOExecutionProvider",))
    probes.store_proven(tmp_path, found)
    assert probes.load_proven(tmp_path) == found


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tags": 1}', '{"tags": {}}'])
def test_a_garbled_note_of_earlier_probes_claims_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / probes.FILE).write_text(text)
    assert probes.load_proven(tmp_path) == probes.Abilities()


@pytest.mark.parametrize(
    ("host", "name"), [("lab-3.example.org", "lab-3"), ("büro", "b-ro"), ("", "node"), ("-x", "node")]
)
def test_a_machines_name_is_one_that_a_farm_takes(host: str, name: str) -> None:
    assert make_node_name(host) == name
