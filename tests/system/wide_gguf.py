"""Makes a large mixture of a small one, of zeros, in a sparse file: wide_gguf.py FILE OUT LAYERS EXPERTS."""
import struct
import sys

from split_gguf import read

U32, F32, F16, Q4_0 = 4, 0, 1, 2
BLOCKS = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18)}  # values and bytes of one


def set_number(keys, name, value):
    head = struct.pack("<Q", len(name)) + name + struct.pack("<I", U32)
    at = keys.index(head) + len(head)
    return keys[:at] + struct.pack("<I", value) + keys[at + 4:]


def widen(name, shape, experts):
    """The shape of a tensor, which has as many experts as it should, and its bytes."""
    n = struct.unpack_from("<I", shape)[0]
    *dims, kind = struct.unpack_from(f"<{n}QI", shape, 4)
    if b"_exps" in name:
        dims[2], kind = experts, Q4_0
    elif b"ffn_gate_inp" in name:
        dims[1] = experts
    values, size = BLOCKS[kind]
    for d in dims:
        size *= d
    return struct.pack(f"<I{n}QI", n, *dims, kind), size // values


def main():
    source, out, layers, experts = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    keys, n_keys, align, tensors = read(source)
    keys = set_number(set_number(keys, b"qwen3moe.block_count", layers), b"qwen3moe.expert_count", experts)
    shapes = [(name, shape) for name, shape, _ in tensors if not name.startswith(b"blk.")]
    shapes += [(b"blk.%d." % i + name[6:], shape) for i in range(layers)
               for name, shape, _ in tensors if name.startswith(b"blk.0.")]
    head, at = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), n_keys) + keys, 0
    for name, shape in shapes:
        shape, size = widen(name, shape, experts)
        head += struct.pack("<Q", len(name)) + name + shape + struct.pack("<Q", at)
        at += (size + align - 1) // align * align
    with open(out, "wb") as f:
        f.write(head)
        f.truncate((len(head) + align - 1) // align * align + at)


main()
