"""Nulls inside structs, lists and maps: found where a table has none, and kept away from fields that are not null.

Below a null struct Arrow has nulls in every field. They are no values, yet an Arrow field that is not nullable may not
hold them; so an arbitrary value is put there, which no reader sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["has_not_null", "in_order_of", "is_list", "nested_nulls", "promise"]


def is_list(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def has_not_null(data_type: pa.DataType) -> bool:
    """Whether a field inside the type is not nullable. The keys of a map, which never are, do not count."""
    if pa.types.is_map(data_type):
        value = data_type.item_field
        return not value.nullable or has_not_null(value.type) or has_not_null(data_type.key_type)
    fields = [data_type.field(i) for i in range(data_type.num_fields)]
    return any(not field.nullable or has_not_null(field.type) for field in fields)


def nested_nulls(array: pa.Array, target: pa.DataType, path: str) -> Iterator[str]:
    """Where there is a null inside although ``target`` has none: ``order.lines[].price``."""
    for step, child, values in _children(array, target):
        if not child.nullable and values.null_count:
            yield path + step
        yield from nested_nulls(values, child.type, path + step)


def promise(array: pa.Array, target: pa.DataType, *, nullable: bool = True) -> pa.Array:
    """An array in which ``nested_nulls`` found nothing, as ``target``: the two differ in nullability alone."""
    if nullable and not has_not_null(target):
        return array
    mask = array.is_null() if nullable and array.null_count else None
    if pa.types.is_struct(target):
        children = [_promise_field(array.field(i), target.field(i)) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if pa.types.is_list(target):
        values = _promise_field(array.flatten(), target.value_field)
        return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=mask)
    if pa.types.is_map(target):
        keys, values = _entries(array.drop_null())
        return pa.MapArray.from_arrays(
            _offsets(array),
            _promise_field(keys, target.key_field),
            _promise_field(values, target.item_field),
            type=target,
            mask=mask,
        )
    _, *buffers = array.buffers()
    return pa.Array.from_buffers(target, len(array), [None, *buffers], null_count=0, offset=array.offset)


def in_order_of(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array with the fields of its structs in the order that ``target`` has them: Arrow casts no others.

    Each is in ``target``, which may have more.
    """
    kind = array.type
    if _is_in_order(kind, target):
        return array
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        there = {kind.field(i).name: i for i in range(kind.num_fields)}
        names = [field.name for field in target if field.name in there]
        children = [in_order_of(array.field(there[name]), target.field(name).type) for name in names]
        return pa.StructArray.from_arrays(children, names=names, mask=mask)
    if is_list(kind):
        values = in_order_of(array.flatten(), target.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, mask=mask)
    keys, values = _entries(array.drop_null())
    return pa.MapArray.from_arrays(
        _offsets(array), in_order_of(keys, target.key_type), in_order_of(values, target.item_type), mask=mask
    )


def _is_in_order(kind: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_struct(kind) and pa.types.is_struct(target):
        positions = [target.get_field_index(field.name) for field in kind]
        inside = (_is_in_order(field.type, target.field(field.name).type) for field in kind)
        return positions == sorted(positions) and all(inside)
    if is_list(kind) and is_list(target):
        return _is_in_order(kind.value_type, target.value_type)
    if pa.types.is_map(kind) and pa.types.is_map(target):
        return _is_in_order(kind.key_type, target.key_type) and _is_in_order(kind.item_type, target.item_type)
    return True


def _promise_field(values: pa.Array, field: pa.Field) -> pa.Array:
    return promise(values, field.type, nullable=field.nullable)


def _children(array: pa.Array, target: pa.DataType) -> Sequence[tuple[str, pa.Field, pa.Array]]:
    if not has_not_null(target):
        return []
    # Values below a null do not count.
    whole = array.drop_null()
    if pa.types.is_struct(target):
        return [(f".{target.field(i).name}", target.field(i), whole.field(i)) for i in range(target.num_fields)]
    if is_list(target):
        return [("[]", target.value_field, whole.flatten())]
    keys, values = _entries(whole)
    return [(".key", target.key_field, keys), (".value", target.item_field, values)]


def _entries(maps: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Keys and values of maps of which none is null. ``keys`` and ``items`` of a slice are those of the whole array."""
    first, last = (maps.offsets[0].as_py(), maps.offsets[-1].as_py()) if len(maps) else (0, 0)
    return maps.keys.slice(first, last - first), maps.items.slice(first, last - first)


def _offsets(array: pa.Array) -> pa.Array:
    """Where each list or map begins once the null ones take no room."""
    if not len(array):
        return pa.array([0], pa.int32())
    ends = array.offsets
    lengths = pc.multiply(pc.subtract(ends[1:], ends[:-1]), array.is_valid().cast(pa.int32()))
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
