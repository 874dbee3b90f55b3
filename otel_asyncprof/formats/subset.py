"""Some of the samples of OTLP profiles, in messages that hold nothing which only the others needed."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import (
        Profile,
        ProfilesData,
        ProfilesDictionary,
        Sample,
    )

_RUNS = {"running", "blocked"}  # has a CPU or at least the loop
_STATE = "asyncprof.state"


def only_running(messages: Iterable[bytes]) -> list[bytes]:
    """Serialised messages without what is suspended or idle; those that would be empty are left out."""
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

    kept = []
    for message in messages:
        data = ProfilesData.FromString(message)
        keep_samples(data, lambda sample, tables: _state_of(sample, tables) in _RUNS)
        if any(scope.profiles for resource in data.resource_profiles for scope in resource.scope_profiles):
            kept.append(data.SerializeToString())
    return kept


def keep_samples(data: "ProfilesData", keep: "Callable[[Sample, ProfilesDictionary], bool]") -> None:
    """Takes out of a message all samples but some, profiles without samples, and entries of tables that nobody uses."""
    for resource in data.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                kept = [sample for sample in profile.samples if keep(sample, data.dictionary)]
                del profile.samples[:]
                profile.samples.extend(kept)
            profiles = [profile for profile in scope.profiles if profile.samples]
            del scope.profiles[:]
            scope.profiles.extend(profiles)
    _Compaction(data).run()


def _state_of(sample: "Sample", tables: "ProfilesDictionary") -> str:
    for index in sample.attribute_indices:
        attribute = tables.attribute_table[index]
        if tables.string_table[attribute.key_strindex] == _STATE:
            return attribute.value.string_value
    return ""


class _Compaction:
    """Numbers the entries of the tables anew, in the order in which they are met."""

    def __init__(self, data: "ProfilesData") -> None:
        self._data = data
        self._old = data.dictionary
        self._new: dict[str, dict[int, int]] = {}

    def run(self) -> None:
        """Replaces the dictionary by one that holds what is used."""
        for resource in self._data.resource_profiles:
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    self._profile(profile)
        new = type(self._old)()
        # From the tables that refer to others to those that are referred to.
        for stack in self._taken("stack_table"):
            stack.location_indices[:] = [self._index("location_table", index) for index in stack.location_indices]
            new.stack_table.append(stack)
        for location in self._taken("location_table"):
            location.mapping_index = self._index("mapping_table", location.mapping_index)
            location.attribute_indices[:] = self._attributes(location.attribute_indices)
            for line in location.lines:
                line.function_index = self._index("function_table", line.function_index)
            new.location_table.append(location)
        for function in self._taken("function_table"):
            self._strings(function, "name_strindex", "system_name_strindex", "filename_strindex")
            new.function_table.append(function)
        for mapping in self._taken("mapping_table"):
            self._strings(mapping, "filename_strindex")
            mapping.attribute_indices[:] = self._attributes(mapping.attribute_indices)
            new.mapping_table.append(mapping)
        for attribute in self._taken("attribute_table"):
            self._strings(attribute, "key_strindex", "unit_strindex")
            new.attribute_table.append(attribute)
        new.link_table.extend(self._taken("link_table"))
        new.string_table.extend(self._taken("string_table"))
        self._data.dictionary.CopyFrom(new)

    def _profile(self, profile: "Profile") -> None:
        for kind in (profile.sample_type, profile.period_type):
            self._strings(kind, "type_strindex", "unit_strindex")
        profile.attribute_indices[:] = self._attributes(profile.attribute_indices)
        for sample in profile.samples:
            sample.stack_index = self._index("stack_table", sample.stack_index)
            sample.link_index = self._index("link_table", sample.link_index)
            sample.attribute_indices[:] = self._attributes(sample.attribute_indices)

    def _index(self, table: str, index: int) -> int:
        numbers = self._new.setdefault(table, {0: 0})
        return numbers.setdefault(index, len(numbers))

    def _attributes(self, indices: Iterable[int]) -> list[int]:
        return [self._index("attribute_table", index) for index in indices]

    def _strings(self, message: object, *fields: str) -> None:
        for field in fields:
            setattr(message, field, self._index("string_table", getattr(message, field)))

    def _taken(self, table: str) -> list:  # type: ignore[type-arg]
        entries = getattr(self._old, table)
        if not entries:
            return []
        return [entries[index] for index in self._new.setdefault(table, {0: 0})]
