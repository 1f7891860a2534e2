"""Credentials and settings that the platforms' own tools keep in files: AWS profiles, and the login of Azure's CLI.

AWS keeps `~/.aws/config` and `~/.aws/credentials` (AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE). The profile is that
of the option `profile`, else of AWS_PROFILE, else `default`. As in AWS's own tools, a profile named by an option wins
over keys in the environment, which win over AWS_PROFILE and the default profile; region and endpoint come from options,
else from the environment, else from the profile. boto3 obtains the credentials of a profile, be they keys, a role, SSO
or the output of a command, and renews them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from configparser import Error as ConfigError
from configparser import RawConfigParser
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from underlay.errors import InvalidRequest, Unsupported

if TYPE_CHECKING:
    from obstore.store import S3Credential

Environment = Mapping[str, str]

PROFILE = "profile"
FAILED = "underlay: credentials of the AWS profile"
"""How the error of a provider begins, which obstore quotes."""
_DEFAULT = "default"
_TTL = timedelta(minutes=5)
"""How long credentials are kept: boto3 returns ones that last at least ten minutes."""
_OWN_KEYS = ("access_key_id", "secret_access_key", "token", "skip_signature", "web_identity_token_file")
"""Options that make a profile unnecessary; obstore also accepts them with the prefix `aws_`."""
_OWN_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE")
_REGION_OPTIONS = ("region", "aws_region", "default_region", "aws_default_region")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_ENDPOINT_OPTIONS = ("endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url", "aws_endpoint_url_s3")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_IGNORE_VARIABLE = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
_CREDENTIAL_KEYS = (
    "aws_access_key_id",
    "credential_process",
    "credential_source",
    "role_arn",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
)
_AZURE_KEYS = ("key", "secret", "sas", "token", "client", "identity", "msi", "cli")
"""Parts of the names of Azure's options and variables that select credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsProfile:
    """What the files say about a profile; `keys` has those of both files."""

    name: str
    keys: Mapping[str, str] = field(repr=False)
    services: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The section of services that it names."""

    @property
    def has_credentials(self) -> bool:
        """Whether it can provide credentials."""
        return any(self.keys.get(key) for key in _CREDENTIAL_KEYS)

    @property
    def endpoint(self) -> str | None:
        """The endpoint of S3, None for AWS's own."""
        if self.keys.get("ignore_configured_endpoint_urls", "").lower() == "true":
            return None
        nested = _nested(self.services.get("s3", "")).get("endpoint_url")
        return nested or self.keys.get("endpoint_url") or None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsDefaults:
    """What is added to the options of an S3 store."""

    options: Mapping[str, str]
    provider: Callable[[], S3Credential] | None = None


def aws_defaults(options: Mapping[str, object], environment: Environment) -> AwsDefaults:
    """Settings and credentials of the profile in question, where neither options nor the environment have them.

    Raises InvalidRequest for a profile that does not exist, Unsupported when it needs boto3 and boto3 is missing.
    """
    named = options.get(PROFILE)
    profile = _find_profile(None if named is None else str(named), environment)
    if profile is None:
        return AwsDefaults(options={})
    found: dict[str, str] = {}
    if not _is_set(options, _REGION_OPTIONS, environment, _REGION_VARIABLES) and profile.keys.get("region"):
        found["region"] = profile.keys["region"]
    is_ignored = environment.get(_IGNORE_VARIABLE, "").lower() == "true"
    if not _is_set(options, _ENDPOINT_OPTIONS, environment, _ENDPOINT_VARIABLES) and not is_ignored:
        found |= {"endpoint": profile.endpoint} if profile.endpoint else {}
    own = [*_OWN_KEYS, *(f"aws_{key}" for key in _OWN_KEYS)]
    has_own = any(options.get(key) for key in own)
    if has_own or (named is None and any(environment.get(name) for name in _OWN_VARIABLES)):
        return AwsDefaults(options=found)
    if not profile.has_credentials and named is None:
        return AwsDefaults(options=found)  # the machine's identity service may have some
    return AwsDefaults(options=found, provider=_provider(profile))


def azure_defaults(options: Mapping[str, object], environment: Environment) -> dict[str, str]:
    """Use the login of Azure's CLI where there is one and no other credentials are named."""
    named = [*options, *(name.lower() for name, value in environment.items() if name.startswith("AZURE_") and value)]
    named += [name.lower() for name in ("IDENTITY_ENDPOINT", "MSI_ENDPOINT") if environment.get(name)]
    if any(key in name for name in named for key in _AZURE_KEYS):
        return {}
    folder = environment.get("AZURE_CONFIG_DIR") or os.path.expanduser("~/.azure")
    is_logged_in = Path(folder, "azureProfile.json").is_file() and shutil.which("az", path=environment.get("PATH"))
    return {"use_azure_cli": "true"} if is_logged_in else {}


def _is_set(
    options: Mapping[str, object], names: tuple[str, ...], environment: Environment, variables: tuple[str, ...]
) -> bool:
    return any(options.get(name) for name in names) or any(environment.get(name) for name in variables)


def _find_profile(named: str | None, environment: Environment) -> AwsProfile | None:
    name = named or environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE") or _DEFAULT
    config = _read(environment.get("AWS_CONFIG_FILE") or "~/.aws/config")
    credentials = _read(environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials")
    sections = (config.get(f"profile {name}"), config.get(name) if name == _DEFAULT else None, credentials.get(name))
    found = [section for section in sections if section is not None]
    if found:
        keys = {key: value for section in found for key, value in section.items()}
        return AwsProfile(name=name, keys=keys, services=config.get(f"services {keys.get('services', '')}", {}))
    if named is None and (name == _DEFAULT or any(environment.get(variable) for variable in _OWN_VARIABLES)):
        return None
    known = sorted({section.removeprefix("profile ") for section in config} | set(credentials))
    raise InvalidRequest(
        "there is no such AWS profile",
        found=name,
        expected=", ".join(one for one in known if not one.startswith(("services ", "sso-session "))) or "a profile",
        hint='Make it with "aws configure", or name another: AWS_PROFILE, or the option profile.',
    )


def _read(path: str) -> dict[str, dict[str, str]]:
    """The sections of a file; none when it does not exist."""
    parser = RawConfigParser(strict=False, default_section="")
    place = os.path.expanduser(path)
    is_damaged = False
    try:
        with open(place, encoding="utf-8") as file:
            parser.read_file(file)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (ConfigError, UnicodeDecodeError):
        is_damaged = True
    if is_damaged:  # raised here, so that what the parser quotes, which may be a secret, is not its context
        raise InvalidRequest("not a configuration file of AWS", place=place, hint="Correct it, or name another.")
    return {section: dict(parser.items(section)) for section in parser.sections()}


def _nested(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _provider(profile: AwsProfile) -> Callable[[], S3Credential]:
    try:
        import boto3  # type: ignore[import-untyped]  # optional, slow to load, and without types
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # without types
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise Unsupported(
            "the credentials of an AWS profile need boto3, which is not installed",
            found=f"profile {profile.name}",
            hint="Install it: pip install 'underlay[aws]'. Or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        ) from None
    errors = (BotoCoreError, ClientError, ValueError)
    try:
        provider = Boto3CredentialProvider(boto3.Session(profile_name=profile.name), ttl=_TTL)
    except errors as error:
        problem = type(error).__name__
    else:

        def credentials() -> S3Credential:
            try:
                return provider()
            except errors as error:
                failed = type(error).__name__
            raise RuntimeError(f"{FAILED}: {failed}")

        return credentials
    raise InvalidRequest(
        "the AWS profile gives no credentials",
        found=f"profile {profile.name}: {problem}",
        hint='Check it with "aws sts get-caller-identity"; log in with "aws sso login".',
    )
