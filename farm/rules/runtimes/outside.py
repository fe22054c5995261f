"""Third-party execution providers: entries that installed packages offer as entry points of `onnxfarm.providers`.

Such an entry is a `Provider`, like those of the table. It may not take a name that the table has. It does not allow
nodes to install anything: its packages have to be allowed by name, like every package beyond the list.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import TypeAdapter, ValidationError

from farm.base.entry_points import EntryError, Group, raise_first_problem
from farm.contract.cells import Runtime
from farm.contract.texts import strip_pydantic_prefix
from farm.rules.runtimes.provider import Plugin, Provider

GROUP = "onnxfarm.providers"
# the forms of a provider's name, an alias, a hardware tag, a package, a release, a library and an option
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_TAG = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_RELEASE = re.compile(r"[0-9][0-9a-z.]{0,11}")
_LIBRARY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*")
_OPTION = re.compile(r"[A-Za-z0-9_.]{1,64}")
MAX_COLOUR = 7
# an option whose name holds one of these words is for the agent to set, never for a matrix
_AGENTS_OWN = ("path", "file", "library", "folder", "directory", "config", "stream")
_QUANTISATION = {"activation": ("int8", "uint8"), "symmetric": ("true", "false")}


def group(own: Sequence[Provider]) -> Group[Provider]:
    return Group(GROUP, Provider, "provider", lambda given, taken: _check(given, beside=(*own, *taken)))


def _check(given: Provider, *, beside: Sequence[Provider]) -> Provider:
    try:
        entry = TypeAdapter(Provider).validate_python(asdict(given))
    except ValidationError as error:
        first = error.errors()[0]
        raise EntryError(f"{'.'.join(map(str, first['loc']))}: {strip_pydantic_prefix(first['msg'])}.") from error
    raise_first_problem((*_find_malformed(entry), *_find_clashes(entry, beside=beside)))
    return entry


def _find_malformed(entry: Provider) -> Iterator[str]:
    words: Sequence[tuple[str, Iterable[str], re.Pattern[str]]] = (
        ("name", [entry.name], _NAME),
        ("short", [entry.short], _TAG),
        ("tag", [entry.tag], _TAG),
        ("aliases", entry.aliases, _WORD),
        ("options", [*entry.options, *entry.defaults], _OPTION),
        ("builds", [build.package for build in entry.builds], _PACKAGE),
        ("computes_with", entry.computes_with, _PACKAGE),
    )
    for what, values, pattern in words:
        yield from (f"{what} has {value!r}, which cannot be one." for value in values if not pattern.fullmatch(value))
    if not 0 <= entry.colour <= MAX_COLOUR:
        yield f"colour has {entry.colour}: write one of 1 to {MAX_COLOUR}, or leave it out."
    if not entry.needs.strip():
        yield "needs is empty: say what a machine has to have."
    yield from _find_malformed_options(entry)
    for plugin in entry.plugins:
        yield from _find_malformed_plugin(plugin)
    probed = Runtime.of(entry.probe_with)
    if entry.probe_with and (probed.distribution not in entry.packages or not _RELEASE.fullmatch(probed.version)):
        yield f"probe_with has {entry.probe_with!r}: write NAME==VERSION of a package that carries it."


def _find_malformed_options(entry: Provider) -> Iterator[str]:
    for option in sorted({*entry.options, *entry.defaults}):
        if any(word in option.lower() for word in _AGENTS_OWN):
            yield f"the option {option!r} names a file or a library, which no matrix may set."
        if option not in entry.options:
            yield f"defaults has {option!r}, which is not one of its options."
    for name, value in entry.quantisation.items():
        if value not in _QUANTISATION.get(name, ()):
            yield f"quantisation has {name}={value}; it takes {' and '.join(_QUANTISATION)}."


def _find_malformed_plugin(plugin: Plugin) -> Iterator[str]:
    if not _PACKAGE.fullmatch(plugin.package):
        yield f"plugins has the package {plugin.package!r}, which cannot be one."
    if not _LIBRARY.fullmatch(plugin.library):
        yield f"the library of {plugin.package} is {plugin.library!r}: write MODULE:FUNCTION."
    yield from (
        f"{plugin.package} has the release {release!r}, which is not a version."
        for release in (*plugin.releases, plugin.core)
        if not _RELEASE.fullmatch(release)
    )
    try:
        has_core = bool(plugin.beside) and SpecifierSet(plugin.beside).contains(plugin.core, prereleases=True)
    except InvalidSpecifier:
        has_core = False
    if not has_core:
        yield f"beside of {plugin.package} is {plugin.beside!r}: write a range with its core, like `>=1.29,<1.32`."


def _find_clashes(entry: Provider, *, beside: Sequence[Provider]) -> Iterator[str]:
    """Yield a sentence for each name or plug-in package that another entry has.

    Entries may share a build, which can carry several providers; a plug-in's package carries one.
    """
    owners = {name: entry.name for entry in beside for name in _list_names(entry)}
    for name in sorted(_list_names(entry) & owners.keys()):
        yield f"{name!r} is the name of {owners[name]} already."
    packages = {package: entry.name for entry in beside for package in entry.packages}
    for plugin in entry.plugins:
        if plugin.package in packages:
            yield f"{plugin.package} carries {packages[plugin.package]} already."


def _list_names(entry: Provider) -> set[str]:
    return {
        name.lower()
        for name in (entry.name, entry.name.removesuffix("ExecutionProvider"), entry.short, entry.tag, *entry.aliases)
    }
