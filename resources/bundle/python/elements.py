"""Element types."""
import torch

# Element types by the names of the plan. Older torch lacks the last ones.
NAMES_OF_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "tf32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "bool": "bool",
    "boolean": "bool",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}


def torch_type(name):
    """torch's element type, or an error that says which torch has it."""
    found = getattr(torch, NAMES_OF_TYPES.get(name, ""), None)
    if found is None:
        raise TypeError(f"torch {torch.__version__} has no element type for {name}; a newer has")
    return found
