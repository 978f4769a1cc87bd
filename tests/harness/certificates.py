"""A certificate authority for tests, and what it signs: for manifests, or for a server on loopback."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class Credential:
    """A root, a certificate that it signed and the certificate's key, in PEM."""

    root: bytes
    chain: bytes
    key: bytes


Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
Public = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey


def credential(days: int = 30, key: Key | None = None, *, of_server: bool = False) -> Credential:
    """A new authority and a certificate of it, a server's for loopback; with negative `days` an old one."""
    uses = [ExtendedKeyUsageOID.EMAIL_PROTECTION]
    names: list[x509.GeneralName] = []
    if of_server:
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        names = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
    root_key = ec.generate_private_key(ec.SECP256R1())
    key = key or ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    since = now - timedelta(days=60)

    def certificate(subject: str, public: Public, until: datetime) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name("Test Authority"))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(since)
            .not_valid_after(until)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
        )

    root = (
        certificate("Test Authority", root_key.public_key(), now + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .add_extension(_usage(signs_certificates=True), True)
        .sign(root_key, SHA256())
    )
    leaf = (
        certificate("Test Service", key.public_key(), now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(_usage(signs_certificates=False), True)
        .add_extension(x509.ExtendedKeyUsage(uses), False)
    )
    if names:
        leaf = leaf.add_extension(x509.SubjectAlternativeName(names), False)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = leaf.sign(root_key, SHA256()).public_bytes(Encoding.PEM)
    return Credential(root.public_bytes(Encoding.PEM), chain, secret)


def _name(common: str) -> x509.Name:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Test Organisation")
    return x509.Name([organization, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
