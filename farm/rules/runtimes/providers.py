"""Finds an execution provider by any of its names, and says which options it takes."""

from collections.abc import Mapping

from farm.contract.cells import CellSpec, Runtime
from farm.rules.runtimes import frameworks, plugins
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION, is_known
from farm.rules.runtimes.distributions import EVERY_DISTRIBUTION as EVERY_DISTRIBUTION
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.runtimes.provider import Provider as Provider
from farm.rules.runtimes.provider import Signs as Signs
from farm.rules.runtimes.provider_table import CPU as CPU
from farm.rules.runtimes.provider_table import OUTSIDE
from farm.rules.runtimes.provider_table import PROVIDERS as PROVIDERS


class UnknownProvider(ValueError):
    """No entry has this name. The message is one sentence that names the nearest one."""


class ProviderOptionProblem(ValueError):
    """An option that the provider does not take, or that only the agent may set. The message is one sentence."""


_BY_NAME = {key.lower(): entry for entry in PROVIDERS for key in (entry.name, entry.short, *entry.aliases)}
# ONNX Runtime's names without their common ending are accepted too: `CUDA`, `MIGraphX`.
_BY_NAME |= {entry.name.removesuffix("ExecutionProvider").lower(): entry for entry in PROVIDERS}


def find(name: str) -> Provider | None:
    """Return the entry with this name, short form or alias, in any case; None for an unknown provider."""
    return _BY_NAME.get(name.strip().lower())


def title(name: str) -> str:
    """Return the name that people use for a provider, given its full name.

    For an unknown name, a short form or an entry without a title, return the name without `ExecutionProvider`.
    """
    entry = find(name)
    name_shown = entry.title if entry is not None and entry.name == name else ""
    return name_shown or name.removesuffix("ExecutionProvider") or name


def resolve(name: str) -> Provider:
    """Return the entry with this name, short form or alias, in any case. Raises UnknownProvider."""
    entry = find(name)
    if entry is None:
        raise UnknownProvider(unknown_sentence(name))
    return entry


def provider_of(name: str) -> Provider:
    """Return the entry of a cell's provider; a provider that only a third-party plug-in registers gets a minimal
    entry."""
    return find(name) or Provider(
        name=name,
        short=name,
        device="npu",
        tag=name.lower(),
        needs="the plug-in that registers it, allowed by name on the farm and by the node's owner",
        takes_any_option=True,
    )


def unknown_sentence(name: str) -> str:
    """Say that there is no such provider, with those that the word may mean, or else the nearest by spelling.

    For a third-party entry that was left out, say why.
    """
    if (refused := OUTSIDE.refused.get(name.strip().lower())) is not None:
        return refused
    meant = [entry.short for entry in PROVIDERS if name.strip().lower() in entry.meant_by]
    if not meant:
        return choice_sentence("provider", name, [p.short for p in PROVIDERS])
    return f"Unknown provider {name!r}: did you mean {' or '.join(map(repr, meant))}?"


def is_carried_by(provider: Provider, distribution: str) -> bool:
    """Whether this distribution, a build or a plug-in beside the plain one, has the provider.

    A framework has the CPU's only; a third-party plug-in of the table the CPU's and its own. Another package beyond the
    list counts as carrying every provider: what it has is not known here, and the check of a cell shows it.
    """
    if distribution == frameworks.DISTRIBUTION:
        return provider is CPU
    if plugins.third_party_plugin(distribution) is not None:
        return provider is CPU or distribution in provider.packages
    return distribution in provider.packages or not is_known(distribution)


def can_be_probed(provider: Provider) -> bool:
    """Whether a node can find out by itself whether it has the provider, with a known public build of ours."""
    if not provider.probe_with:
        return provider is not CPU and DEFAULT_DISTRIBUTION in provider.distributions
    return plugins.third_party_plugin(Runtime.of(provider.probe_with).distribution) is None


def needs_devices(provider: Provider, options: Mapping[str, str]) -> bool:
    """Whether its processes need device files: it is an accelerator's provider, or its options move it to one."""
    return provider.device != "cpu" or provider.tag_with(options) != provider.tag


def check_options(provider: Provider, options: Mapping[str, str]) -> None:
    """Raise ProviderOptionProblem for the first option that the provider does not take from a matrix."""
    if provider.takes_any_option:
        return
    for option in options:
        if not provider.options:
            raise ProviderOptionProblem(f"{provider.name} takes no options here: leave out {option!r}.")
        if option not in provider.options:
            taken = sorted(provider.options)
            raise ProviderOptionProblem(choice_sentence(f"option of {provider.name}", option, taken))


def with_defaults(provider: Provider, options: Mapping[str, str]) -> dict[str, str]:
    return {**provider.defaults, **options}


def session_options(provider: Provider, cell: CellSpec) -> dict[str, str]:
    """Return the cell's options of the provider, with its threads for a provider that has a thread pool of its own.

    An option that the cell sets itself takes precedence; the provider's defaults are not added.
    """
    name = (plugins.plugin_of(cell.runtime) or provider).threads_option
    return {**({name: str(cell.session.threads)} if name else {}), **cell.provider_options}


def requested_list(provider: Provider) -> tuple[str, ...]:
    """Return the names of the providers that a session asks for: this one, then the CPU to fall back on."""
    return (provider.name,) if provider is CPU else (provider.name, CPU.name)
