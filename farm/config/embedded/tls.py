"""Adds TLS to a farm without a proxy: `onnxfarm serve --tls-cert FILE --tls-key FILE`.

A phone needs an https:// address to be a node, because browsers store keys and run threads only there.
"""

import ssl
from dataclasses import replace
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from farm.config.embedded.plan import NotPossibleError, Plan, Tls, find_free_port, is_port_free

ANYWHERE = "0.0.0.0"


def add_tls(plan: Plan, *, cert: Path, key: Path, port: int) -> Plan:
    """Return the plan with TLS: pages at `port`, nodes at another free port, and https:// addresses for both.

    The addresses have the first host name without a wildcard in the certificate, else its first IP address or common
    name, unless the plan has public ones. Raises NotPossibleError if the certificate cannot be read or names no host
    (even then), if the key belongs to another certificate or has a password, or if the port is taken.
    """
    name = _read_host_name(cert)
    _check_pair(cert, key)
    if not is_port_free(port):
        raise NotPossibleError(f"Port {port} is taken by another program; choose another with --tls-port N.")
    tls = Tls(cert.resolve(), key.resolve(), port, find_free_port(near=port))
    return replace(
        plan,
        tls=tls,
        public_url=plan.public_url or f"https://{name}:{tls.port}",
        public_gateway_url=plan.public_gateway_url or f"https://{name}:{tls.gateway_port}",
    )


def _read_host_name(cert: Path) -> str:
    """Return the first host name without a wildcard in the certificate, else its first IP address or common name.

    Raises NotPossibleError.
    """
    try:
        certificate = x509.load_pem_x509_certificates(cert.read_bytes())[0]
    except OSError as problem:
        raise NotPossibleError(f"The certificate {cert} cannot be read ({problem.strerror}).") from problem
    except ValueError as problem:
        raise NotPossibleError(
            f"{cert} is not a certificate in PEM: name the file that begins with the farm's own."
        ) from problem
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    candidates = [
        *names.get_values_for_type(x509.DNSName),
        *(
            f"[{address}]" if address.version == 6 else str(address)
            for address in names.get_values_for_type(x509.IPAddress)
        ),
        *(str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)),
    ]
    hosts = [name for name in candidates if name and "*" not in name and " " not in name]
    if not hosts:
        raise NotPossibleError(
            f"{cert} names no host that can be typed: set ONNXFARM_PUBLIC_URL to the farm's address."
        )
    return hosts[0]


def _check_pair(cert: Path, key: Path) -> None:
    def refuse_password() -> str:
        raise ValueError("it asks for a password")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=refuse_password)
    except (OSError, ValueError) as problem:
        reason = problem.reason if isinstance(problem, ssl.SSLError) else getattr(problem, "strerror", None) or problem
        raise NotPossibleError(
            f"{key} is not the key of {cert} ({reason}): name the key that it was made with."
        ) from problem
